package layout

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
)

// TestCSVText: names from outside are no formulas, and have no control characters.
func TestCSVText(t *testing.T) {
	for text, want := range map[string]string{
		"chat": "chat", "": "", "-3.5e+2": "-3.5e+2", "+1": "+1", "-": "'-", "=1+1": "'=1+1", "@x": "'@x",
		"+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0", "-2+3+cmd": "'-2+3+cmd", "a\x1b[31mb\tc\r\nd": `a\x1b[31mb\tc\r\nd`,
		"\t=1": `\t=1`, "\u009b31m": `\u009b31m`,
	} {
		if got := csvText(text); got != want {
			t.Errorf("%q: %q (want %q)", text, got, want)
		}
		rows, err := csv.NewReader(strings.NewReader(CSVField(text) + ",x\n")).ReadAll()
		if err != nil || rows[0][0] != want {
			t.Errorf("%q: read %q, %v", text, rows, err)
		}
	}
	var b bytes.Buffer
	if err := NewCSVWriter(&b).WriteAll([][]string{{"a", "=b,c"}}); err != nil || b.String() != "a,\"'=b,c\"\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}
