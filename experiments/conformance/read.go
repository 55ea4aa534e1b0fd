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

// header is the first object of a file.
type header struct {
	Format string `json:"format"`
	Source string `json:"source"`
	Cases  int    `json:"cases"`
}

type format struct {
	name     string
	profiles []string
	read     func(data []byte, c *Case) error // reads the object of a case
}

var formats = []format{{"vllm-1", vllmProfiles, readVLLM}, {"sglang-1", sglangProfiles, readSGLang}}

// Read reads a file of records, which may be compressed with gzip. An error means that the file is no record at all. If
// it ends too early or an object is broken, the record has the cases before, and the fault.
func Read(name string, r io.Reader) (*Record, error) {
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		in = bufio.NewReader(z)
	}
	objects := json.NewDecoder(in)
	var head header
	if err := objects.Decode(&head); err != nil {
		return nil, fmt.Errorf("%s: this is no record of a scheduler (want a JSON object with format, source and "+
			"cases)",
			name)
	}
	at := slices.IndexFunc(formats, func(f format) bool { return f.name == head.Format })
	if at < 0 {
		return nil, fmt.Errorf("%s: format %q is not known (want vllm-1 or sglang-1)", name, head.Format)
	}
	rec := &Record{File: name, Format: head.Format, Source: head.Source}
	rec.end(head.Cases, rec.readCases(objects, &formats[at]))
	return rec, nil
}

// readCases reads the cases up to the end of the file, which is no error.
func (r *Record) readCases(objects *json.Decoder, f *format) error {
	for {
		var data json.RawMessage
		if err := objects.Decode(&data); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		c := &Case{Format: f.name}
		if err := c.read(data, f); err != nil {
			return err
		}
		r.Cases = append(r.Cases, c)
	}
}

// end notes the missing cases of a file that announced a number of them. err is the error that ended the reading early,
// or nil.
func (r *Record) end(announced int, err error) {
	r.Missing = max(announced-len(r.Cases), 0)
	switch {
	case r.Missing == 0 && err == nil:
		return
	case errors.Is(err, io.ErrUnexpectedEOF) || err == nil:
		r.Fault = fmt.Sprintf("the file ends after %d of %d cases", len(r.Cases), announced)
	default:
		r.Fault = fmt.Sprintf("after %d of %d cases: %v", len(r.Cases), announced, err)
	}
}

func (c *Case) read(data []byte, f *format) error {
	var named struct{ Name string }
	if err := json.Unmarshal(data, &named); err != nil {
		return errors.New("this is no JSON object")
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
	switch err := f.read(data, c); {
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
