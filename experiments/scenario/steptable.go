package scenario

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
)

// TableStep takes step times from a file of measured iterations; see [model.ReadIterations] for its columns, and
// [model.Table] for what lies between them. It is written as the file's name, or as a map where its content is held to
// a digest.
type TableStep struct {
	// File is a CSV file, relative to the scenario's.
	File string `json:"file"`
	// SHA256 is that of the file, in hexadecimal. Results say it; where it is given, the file must have it.
	SHA256 string `json:"sha256,omitempty"`
}

// tableKeys is TableStep without its short form.
type tableKeys TableStep

func (t *TableStep) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	const want = "a CSV file of measured iterations such as steps.csv"
	switch {
	case n.Kind == yamldoc.Text && n.Text != "":
		t.File = n.Text
	case n.Kind != yamldoc.Map:
		d.Wrong(n, key, want)
	default:
		d.Value(n, key, (*tableKeys)(t), "")
		if t.File == "" {
			d.Fault(n.At, key, "file is missing (want "+want+")", "")
		}
	}
}

// MarshalJSON writes the file's name, or the map.
func (t TableStep) MarshalJSON() ([]byte, error) {
	if t.SHA256 == "" {
		return json.Marshal(t.File)
	}
	return json.Marshal(tableKeys(t))
}

// maxTableBytes bounds such a file: a million iterations.
const maxTableBytes = 32 << 20

// tableFile is the content of the table that step times come from.
type tableFile struct {
	file string
	data []byte
}

// readTable reads the file of step times, if they come from one.
func (u engineResolver) readTable() error {
	s := u.Scenario
	t := &s.StepTime.Table
	if s.StepTime.Kind != "table" {
		return nil
	}
	const key = "step_time.table"
	path := s.path(key, t.File)
	data, err := readUpTo(path, maxTableBytes)
	switch {
	case err != nil:
		return s.Fault(key, "%s cannot be read: %s", path, PlainFileError(err))
	case len(data) > maxTableBytes:
		return s.Fault(key, "%s has more than %d MiB (want measured iterations, one in a line)", path,
			maxTableBytes>>20)
	case s.Engine.Speculative != nil:
		return s.Fault(s.FirstGiven("engine.speculative", key),
			"a table of step times has no draft passes (want step_time kernels or roofline, or no speculative decoding)")
	}
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	if t.SHA256 != "" && t.SHA256 != digest {
		return s.Fault(key, "%s has the SHA-256 %s, and not %.64s", path, digest, t.SHA256)
	}
	t.SHA256 = digest
	u.table = tableFile{path, data}
	return nil
}

// newTable makes the table of step times, which has been read.
func (u engineResolver) newTable() (*model.Table, error) {
	all, err := model.ReadIterations(u.table.file, bytes.NewReader(u.table.data))
	if err != nil {
		return nil, err
	}
	t, err := model.NewTable(all)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.table.file, err)
	}
	return t, nil
}

// checkTable warns of iterations that the table does not cover.
func (u engineResolver) checkTable() {
	t, ok := u.Config.Timer.(*model.Table)
	if !ok {
		return
	}
	e := &u.Scenario.Engine
	decodes, prefill := t.Limits()
	if decodes < *e.MaxNumSeqs || prefill+decodes < *e.MaxNumBatchedTokens {
		u.Warn("table_range", "the table of step times ends at %d decodes and %d prefill tokens, but the engine allows %d "+
			"sequences and %d tokens: longer steps are extrapolated",
			decodes, prefill, *e.MaxNumSeqs, *e.MaxNumBatchedTokens)
	}
	if unmixed := t.PrefillOnly(); len(unmixed) > 0 {
		u.Warn("table_unmixed", "the table of step times has no decodes beside %d prefill tokens: such iterations are "+
			"given the time of the prefill alone", unmixed[0])
	}
}
