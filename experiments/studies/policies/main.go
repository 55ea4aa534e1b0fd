// Command policies compares the batching policies on the same traffic, and writes a table and a picture for each
// kind of it.
//
//	go run ./experiments/studies/policies -out experiments/studies/policies
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
	out := flag.String("out", ".", "write results.md and pictures into this `directory`")
	requests := flag.Int("requests", 4000, "requests of each run")
	flag.Parse()
	list, err := readTraffics()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.MkdirAll(*out, 0o777); err != nil {
		log.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("# Results\n\nWritten by `go run ./experiments/studies/policies`; [README.md](README.md) says what they mean.\n")
	for _, t := range list {
		log.Printf("%s …", t.name)
		if err := t.run(context.Background(), policies, *requests); err != nil {
			log.Fatal(err)
		}
		t.table(&text, policies)
		if err := draw(t, filepath.Join(*out, strings.ReplaceAll(t.name, " ", "-")+".png")); err != nil {
			log.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(*out, "results.md"), []byte(text.String()), 0o644); err != nil {
		log.Fatal(err)
	}
}

// draw writes the picture of a traffic.
func draw(t *traffic, name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := t.picture(policies).WritePNG(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
