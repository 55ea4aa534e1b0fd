package traces

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"clifftop/workload/trace"
)

// traceOutput writes a trace in Clifftop's own format, with comments before the header.
type traceOutput struct {
	*trace.Writer
	zip *gzip.Writer // Default nil
}

func newTraceOutput(w io.Writer, comments []string, columns trace.Columns, classes []string, zip bool) (*traceOutput,
	error) {
	o := &traceOutput{}
	if zip {
		o.zip = gzip.NewWriter(w)
		w = o.zip
	}
	b := bufio.NewWriter(w)
	for _, c := range comments {
		fmt.Fprintf(b, "# %s\n", strings.Join(strings.Fields(c), " "))
	}
	if err := b.Flush(); err != nil {
		return nil, err
	}
	o.Writer = trace.NewWriter(w, columns, classes)
	return o, nil
}

// Close writes what is left; it does not close what it was given.
func (o *traceOutput) Close() error {
	if err := o.Flush(); err != nil || o.zip == nil {
		return err
	}
	return o.zip.Close()
}
