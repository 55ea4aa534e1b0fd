package validation

import (
	"bytes"
	"os"
	"testing"

	"clifftop/internal/testenv"
	"clifftop/model/catalog"
)

// TestRecordIsCurrent holds the errors that the catalog quotes against those of today's model.
func TestRecordIsCurrent(t *testing.T) {
	testenv.NeedsLong(t, "closed loops are simulated, too")
	_, r := measuredRuns(t)
	var text bytes.Buffer
	if err := r.WriteRecords(&text); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../model/catalog/accuracy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text.Bytes(), want) {
		t.Errorf("model/catalog/accuracy.yaml is out of date: run clifftop validate --out DIR, copy DIR/accuracy.yaml there, "+
			"and run go generate ./model/catalog\n%s", text.String())
	}
	if len(catalog.Accuracies()) != len(r.Records()) {
		t.Errorf("the catalog has %d records, the report %d", len(catalog.Accuracies()), len(r.Records()))
	}
}
