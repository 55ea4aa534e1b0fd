package conformance

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Record is a file of records.
type Record struct {
	// File is its name, Format its format, and Source the scheduler that was recorded.
	File   string `json:"file"`
	Format string `json:"format"`
	Source string `json:"source"`
	// Cases are the cases that could be read.
	Cases []*Case `json:"-"`
	// Fault says why the file was not read to its end; empty if it was.
	Fault string `json:"fault,omitempty"`
	// Missing is the number of cases after the fault.
	Missing int `json:"missing,omitempty"`
}

// header is the first line of a file.
type header struct {
	Format  string `json:"format"`
	Source  string `json:"source"`
	Feature string `json:"feature"`
	Cases   int    `json:"cases"`
}

// format is a format of records.
type format struct {
	name     string
	profiles []string
	read     func(line []byte, c *Case) error // reads the line of a case
}

var formats = []format{{"vllm-1", vllmProfiles, readVLLM}, {"sglang-1", sglangProfiles, readSGLang}}

// maxLine is the length of the longest line that is read.
const maxLine = 64 << 20

// Read reads a file of records, which may be compressed with gzip. An error means that the file is no record at all. If
// it ends too early or a line is broken, the record has the cases before, and the fault.
func Read(name string, r io.Reader) (*Record, error) {
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("%s: line 1: %w", name, err)
		}
		in = bufio.NewReader(z)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	lines.Scan()
	var head header
	if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
		return nil, fmt.Errorf("%s: line 1: this is no record of a scheduler (want a JSON object with format, source "+
			"and cases)", name)
	}
	at := slices.IndexFunc(formats, func(f format) bool { return f.name == head.Format })
	if at < 0 {
		return nil, fmt.Errorf("%s: line 1: format %q is not known (want vllm-1 or sglang-1)", name, head.Format)
	}
	rec := &Record{File: name, Format: head.Format, Source: head.Source}
	for n := 2; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		c := &Case{Format: head.Format}
		if err := c.read(lines.Bytes(), &formats[at]); err != nil {
			var broken *json.SyntaxError
			if !errors.As(err, &broken) || broken.Offset < int64(len(lines.Bytes())) {
				rec.Fault = fmt.Sprintf("line %d: %v", n, err)
			} // otherwise the line ends too early, and with it the file
			break
		}
		rec.Cases = append(rec.Cases, c)
	}
	rec.end(head.Cases, lines.Err())
	return rec, nil
}

// end notes what is missing at the end of a file that announced a number of cases.
func (r *Record) end(announced int, err error) {
	r.Missing = max(announced-len(r.Cases), 0)
	switch {
	case r.Fault != "" || r.Missing == 0 && err == nil:
		return
	case errors.Is(err, io.ErrUnexpectedEOF) || err == nil:
		r.Fault = fmt.Sprintf("the file ends after %d of %d cases", len(r.Cases), announced)
	default:
		r.Fault = fmt.Sprintf("after %d of %d cases: %v", len(r.Cases), announced, err)
	}
}

// read reads a case from its line.
func (c *Case) read(line []byte, f *format) error {
	var named struct{ Name string }
	if err := json.Unmarshal(line, &named); err != nil {
		return fmt.Errorf("this is no JSON object: %w", err)
	}
	dash := strings.LastIndexByte(named.Name, '-')
	if dash <= 0 {
		return fmt.Errorf("the case has no name of the form profile-seed, but %q", named.Name)
	}
	c.Name, c.Profile = named.Name, named.Name[:dash]
	if !slices.Contains(f.profiles, c.Profile) {
		c.Refused = fmt.Sprintf("profile %q is not known (want %s)", c.Profile, strings.Join(f.profiles, ", "))
		return nil
	}
	var unknown *unknownError
	switch err := f.read(line, c); {
	case errors.As(err, &unknown):
		c.Refused = unknown.Error()
	case err != nil:
		return fmt.Errorf("case %s: %w", c.Name, err)
	case len(c.iterations) == 0:
		return fmt.Errorf("case %s has no steps", c.Name)
	}
	return nil
}

// unknownError is a value of a record that has no counterpart in the simulator.
type unknownError struct{ key, value string }

func (e *unknownError) Error() string {
	return fmt.Sprintf("%s %s is not known", e.key, e.value)
}

// decode reads the settings of an engine. A key that is not known could change what its scheduler does.
func decode(data []byte, settings any) error {
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	err := in.Decode(settings)
	if err != nil {
		if key, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
			return &unknownError{"config:", key}
		}
	}
	return err
}

// tuple reads a JSON array into variables. Further elements are ignored.
func tuple(data []byte, to ...any) error {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if len(list) < len(to) {
		return fmt.Errorf("an array has %d elements (want %d)", len(list), len(to))
	}
	for i, v := range to {
		if err := json.Unmarshal(list[i], v); err != nil {
			return err
		}
	}
	return nil
}

// optional reads an element of a JSON array into a variable, if the array has it.
func optional(data []byte, i int, to any) error {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil || i >= len(list) {
		return err
	}
	return json.Unmarshal(list[i], to)
}
