// Command clifftop-parquet turns the CSV files that Clifftop writes, and traces in its own format, into Parquet. It
// is a command of its own so that clifftop stays small.
//
//	clifftop run --out results
//	go run ./cmd/clifftop-parquet results/requests.csv results/timeseries.csv
//	clifftop trace generate --to - | go run ./cmd/clifftop-parquet - > chat.parquet
//
// Rows are streamed: memory does not grow with them.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const usage = `usage: clifftop-parquet FILE.csv...      writes FILE.parquet beside each
       clifftop-parquet - < FILE.csv > FILE.parquet
`

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "clifftop-parquet: %v\n", err)
		os.Exit(2)
	}
}

func run(args []string, in io.Reader, out, messages io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("the file is missing (want CSV files, or - for standard input)")
	}
	if args[0] == "-h" || args[0] == "--help" {
		_, err := io.WriteString(messages, usage)
		return err
	}
	for _, name := range args {
		if name == "-" {
			w := bufio.NewWriter(out)
			if _, err := convert(w, in, "standard input"); err != nil {
				return err
			}
			if err := w.Flush(); err != nil {
				return err
			}
			continue
		}
		if err := convertFile(name, messages); err != nil {
			return err
		}
	}
	return nil
}

// convertFile writes a Parquet file beside a CSV file. It gets its name when it is whole.
func convertFile(name string, messages io.Writer) error {
	base, ok := strings.CutSuffix(name, ".csv")
	if !ok {
		return fmt.Errorf("%s: the name does not end in .csv", name)
	}
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	to := base + ".parquet"
	f, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	rows, err := convert(f, in, name)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), to); err != nil {
		return err
	}
	_, err = fmt.Fprintf(messages, "clifftop-parquet: wrote %s: %d rows\n", to, rows)
	return err
}
