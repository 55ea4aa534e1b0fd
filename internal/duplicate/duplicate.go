// Package duplicate finds names that are given twice where one of the values would be lost silently: columns of a CSV
// header, and keys of a JSON object.
package duplicate

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Column returns the first name of a header that is there twice. Empty names do not count.
func Column(names []string) (name string, found bool) {
	seen := map[string]bool{}
	for _, n := range names {
		n = strings.TrimSpace(n)
		if n != "" && seen[n] {
			return n, true
		}
		seen[n] = true
	}
	return "", false
}

// Key returns the first key that an object in a JSON text has twice: its dotted path, and its line from 1. It finds
// nothing in text that is not JSON.
func Key(data []byte) (path string, line int, found bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	path, found, err := inValue(d, "")
	if err != nil || !found {
		return "", 0, false
	}
	return path, 1 + bytes.Count(data[:d.InputOffset()], []byte("\n")), true
}

// inValue reads a value and returns the path of the first key that is there twice.
func inValue(d *json.Decoder, path string) (key string, found bool, err error) {
	t, err := d.Token()
	if err != nil {
		return "", false, err
	}
	kind, isDelim := t.(json.Delim)
	if !isDelim {
		return "", false, nil
	}
	seen := map[string]bool{}
	for i := 0; d.More(); i++ {
		at := strconv.Itoa(i)
		if kind == '{' {
			name, err := d.Token()
			if err != nil {
				return "", false, err
			}
			at = name.(string) // the decoder has checked it
			if seen[at] {
				return join(path, at), true, nil
			}
			seen[at] = true
		}
		if key, found, err = inValue(d, join(path, at)); found || err != nil {
			return key, found, err
		}
	}
	_, err = d.Token() // the closing bracket
	return "", false, err
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
