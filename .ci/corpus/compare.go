package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// rules says what counts as a difference.
type rules struct {
	numbers  bool // numbers only
	noStderr bool // not the text of stderr
	most     int  // files shown for each case
}

// compare lists the cases, of those that match the pattern, whose outputs in two directories differ, with the first
// difference of each file.
func compare(a, b string, pattern *regexp.Regexp, r rules) error {
	left, err := list(a)
	if err != nil {
		return err
	}
	right, err := list(b)
	if err != nil {
		return err
	}
	maps.DeleteFunc(left, func(name string, _ map[string]bool) bool { return !pattern.MatchString(name) })
	maps.DeleteFunc(right, func(name string, _ map[string]bool) bool { return !pattern.MatchString(name) })
	cases, bad := 0, 0
	kinds := map[string]int{} // files that differ, by name
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if right[name] == nil {
			continue
		}
		cases++
		differences, notes := r.files(filepath.Join(a, name), filepath.Join(b, name), left[name], right[name], kinds)
		if len(differences) > 0 {
			bad++
		}
		if shown := append(differences, notes...); len(shown) > 0 {
			fmt.Println(name)
			for _, text := range shown[:min(r.most, len(shown))] {
				fmt.Println(text)
			}
			if more := len(shown) - r.most; more > 0 {
				fmt.Printf("  … and %d more files\n", more)
			}
		}
	}
	for _, file := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Printf("%5d × %s\n", kinds[file], file)
	}
	fmt.Printf("%d of %d cases differ\n", bad, cases)
	if n, m := len(left)-cases, len(right)-cases; n+m > 0 {
		fmt.Printf("not compared: %d cases that %s alone has, %d that %s alone has\n", n, a, m, b)
	}
	if cases == 0 {
		return errors.New("there is nothing to compare")
	}
	if bad > 0 {
		return errors.New("outputs differ")
	}
	return nil
}

// list returns the files of each case below a directory of results.
func list(place string) (map[string]map[string]bool, error) {
	if _, err := os.Stat(filepath.Join(place, "HASHES")); err != nil {
		return nil, fmt.Errorf("%s holds no results", place)
	}
	cases := map[string]map[string]bool{}
	err := filepath.WalkDir(place, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		relative, _ := filepath.Rel(place, path)
		name, file, ok := strings.Cut(relative, string(filepath.Separator))
		if !ok || strings.HasPrefix(name, ".") {
			return nil
		}
		if cases[name] == nil {
			cases[name] = map[string]bool{}
		}
		cases[name][strings.TrimSuffix(file, ".packed")] = true
		return nil
	})
	return cases, err
}

// files compares the files of one case: differences count, notes do not.
func (r rules) files(a, b string, left, right map[string]bool, kinds map[string]int) (differences, notes []string) {
	names := slices.Collect(maps.Keys(left))
	for name := range right {
		if !left[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if r.noStderr && strings.HasSuffix(name, ".stderr") || r.numbers && strings.HasSuffix(name, ".sha256") {
			continue
		}
		if !left[name] || !right[name] {
			differences = append(differences, fmt.Sprintf("  %s is in one of them only", name))
			kinds[strings.TrimLeft(name, "0123456789.")]++
			continue
		}
		x, errX := read(filepath.Join(a, name))
		y, errY := read(filepath.Join(b, name))
		if err := errors.Join(errX, errY); err != nil {
			differences = append(differences, "  "+err.Error())
			continue
		}
		if bytes.Equal(x, y) {
			continue
		}
		var difference, note string
		if r.numbers {
			difference, note = compareNumbers(name, x, y)
		} else {
			difference = firstLine(name, x, y)
		}
		if difference != "" {
			differences = append(differences, difference)
			kinds[strings.TrimLeft(name, "0123456789.")]++
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	return differences, notes
}

// read returns the content of a file, packed or not.
func read(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err == nil && !strings.HasSuffix(path, ".gz") {
		return text, nil
	}
	if err != nil {
		if text, err = os.ReadFile(path + ".packed"); err != nil {
			return nil, err
		}
	}
	reader, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return text, nil // A file that is cut short on purpose.
	}
	return io.ReadAll(reader)
}

// firstLine shows the first line in which two texts differ.
func firstLine(name string, x, y []byte) string {
	left, right := strings.Split(string(x), "\n"), strings.Split(string(y), "\n")
	for i := 0; ; i++ {
		if i < len(left) && i < len(right) && left[i] == right[i] {
			continue
		}
		var old, new string
		if i < len(left) {
			old = left[i]
		}
		if i < len(right) {
			new = right[i]
		}
		at := 0
		for at < len(old) && at < len(new) && old[at] == new[at] {
			at++
		}
		return fmt.Sprintf("  %s:%d\n    - %s\n    + %s", name, i+1, around(old, at), around(new, at))
	}
}

// around returns a part of the line that includes the byte at.
func around(line string, at int) string {
	from, to := max(0, at-60), min(len(line), at+100)
	if from > to {
		from = to
	}
	text := strings.ToValidUTF8(line[from:to], "")
	if from > 0 {
		text = "…" + text
	}
	if to < len(line) {
		text += "…"
	}
	return text
}
