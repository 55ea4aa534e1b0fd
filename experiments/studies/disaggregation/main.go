// Command disaggregation asks which requests are better served by GPUs of their own for prompts and for answers, and writes
// a table and a picture.
//
//	go run ./experiments/studies/disaggregation -out experiments/studies/disaggregation
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", ".", "write results.md and the picture into this `directory`")
	flag.Parse()
	list, err := readTraffics()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.MkdirAll(*out, 0o777); err != nil {
		log.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("# Results\n\nWritten by `go run ./experiments/studies/disaggregation`; [README.md](README.md) says what they mean.\n")
	for _, t := range list {
		log.Printf("%s …", t.scenario.Name)
		if err := t.run(context.Background()); err != nil {
			log.Fatal(err)
		}
		t.table(&text)
	}
	if err := os.WriteFile(filepath.Join(*out, "results.md"), []byte(text.String()), 0o644); err != nil {
		log.Fatal(err)
	}
	f, err := os.Create(filepath.Join(*out, "capacity.png"))
	if err != nil {
		log.Fatal(err)
	}
	if err := picture(list).WritePNG(f); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
}
