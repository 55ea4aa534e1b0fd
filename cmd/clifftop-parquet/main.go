// Command clifftop-parquet converts Clifftop's CSV output, and traces in its own format, to Parquet. It is a
// separate command so that clifftop stays small.
//
//	clifftop run --out results
//	go run ./cmd/clifftop-parquet results/requests.csv results/timeseries.csv
//	clifftop trace generate --to - | go run ./cmd/clifftop-parquet - > chat.parquet
//
// It streams rows in constant memory.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const usage = `usage: clifftop-parquet FILE.csv...      writes FILE.parquet next to each file
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
		return fmt.Errorf("no file given (want CSV files, or - for standard input)")
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

// convertFile writes a Parquet file next to a CSV file. It writes to a temporary file and renames it when it is
// complete.
func convertFile(name string, messages io.Writer) error {
	base, ok := strings.CutSuffix(name, ".csv")
	if !ok {
		return fmt.Errorf("%s: not a .csv file (want a name that ends in .csv)", name)
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
