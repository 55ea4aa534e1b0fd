package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A difference is a place where two artifacts differ.
type difference struct {
	place    string
	old, new string
}

// mostPlaces bounds the differences that are listed of one artifact.
const mostPlaces = 200

// differ lists where two artifacts differ. The second list has the places of effort.
func differ(a, b artifact) (found, effort []difference) {
	if bytes.Equal(a.data, b.data) {
		return nil, nil
	}
	switch extension := filepath.Ext(b.name); {
	case b.name == "exit":
		return []difference{{"", string(a.data), string(b.data)}}, nil
	case extension == ".json" || b.name == "json":
		x, errX := leaves(a.data)
		y, errY := leaves(b.data)
		if errX == nil && errY == nil {
			return differJSON(x, y)
		}
	case extension == ".csv" || b.name == "csv":
		if found := differCSV(a.data, b.data); found != nil {
			return found, nil
		}
	case slices.Contains([]string{".png", ".svg", ".html", ".ico"}, extension):
		return []difference{{"", fmt.Sprint(len(a.data), " bytes"), fmt.Sprint(len(b.data), " bytes")}}, nil
	}
	return differText(string(a.data), string(b.data)), nil
}

// A leaf is a value of a JSON text that is no object and no list, with its path, or the begin of one of these.
type leaf struct{ path, value string }

// leaves lists the leaves of a JSON text in its order.
func leaves(data []byte) ([]leaf, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var all []leaf
	var walk func(path string) error
	walk = func(path string) error {
		t, err := d.Token()
		if err != nil {
			return err
		}
		delim, ok := t.(json.Delim)
		if !ok {
			text, err := json.Marshal(t)
			all = append(all, leaf{path, string(text)})
			return err
		}
		all = append(all, leaf{path, delim.String()})
		for i := 0; d.More(); i++ {
			below := fmt.Sprintf("%s[%d]", path, i)
			if delim == '{' {
				key, err := d.Token()
				if err != nil {
					return err
				}
				below = strings.TrimPrefix(fmt.Sprintf("%s.%v", path, key), ".")
			}
			if err := walk(below); err != nil {
				return err
			}
		}
		_, err = d.Token()
		return err
	}
	err := walk("")
	return all, err
}

var (
	indices    = regexp.MustCompile(`\[\d+\]`)
	effortPath = regexp.MustCompile(`(^|\.)effort($|[.[])`)
)

// differJSON compares leaves by path, and then their order and the layout of the text.
func differJSON(a, b []leaf) (found, effort []difference) {
	values := map[string]string{}
	for _, l := range a {
		values[l.path] = l.value
	}
	add := func(path, old, new string) {
		d := difference{indices.ReplaceAllString(path, "[]"), old, new}
		if effortPath.MatchString(path) {
			effort = append(effort, d)
		} else {
			found = append(found, d)
		}
	}
	seen := map[string]bool{}
	for _, l := range b {
		seen[l.path] = true
		if old, ok := values[l.path]; !ok {
			add(l.path, "missing", l.value)
		} else if old != l.value {
			add(l.path, old, l.value)
		}
	}
	for _, l := range a {
		if !seen[l.path] {
			add(l.path, l.value, "missing")
		}
	}
	if len(found) == 0 {
		isEffort := func(l leaf) bool { return effortPath.MatchString(l.path) }
		x, y := slices.DeleteFunc(slices.Clone(a), isEffort), slices.DeleteFunc(slices.Clone(b), isEffort)
		if !slices.Equal(x, y) || len(effort) == 0 {
			found = append(found, difference{"(order or layout)", "", ""})
		}
	}
	return found, effort
}

// differCSV compares tables by column. It returns nil if the texts are no tables.
func differCSV(a, b []byte) (found []difference) {
	x, errX := csv.NewReader(bytes.NewReader(a)).ReadAll()
	y, errY := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if errX != nil || errY != nil || len(x) == 0 || len(y) == 0 {
		return nil
	}
	if !slices.Equal(x[0], y[0]) {
		return []difference{{"(columns)", strings.Join(x[0], ","), strings.Join(y[0], ",")}}
	}
	if len(x) != len(y) {
		found = append(found, difference{"(rows)", fmt.Sprint(len(x)), fmt.Sprint(len(y))})
	}
	for i := range x[0] {
		for row := 1; row < min(len(x), len(y)); row++ {
			if x[row][i] != y[row][i] {
				found = append(found, difference{x[0][i], x[row][i], y[row][i]})
				break
			}
		}
	}
	return found
}

var digits = regexp.MustCompile(`[0-9][0-9,.]*`)

// differText lists lines that only one text has. Each is named by its words, with # for numbers.
func differText(a, b string) (found []difference) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	count := map[string]int{}
	for _, line := range x {
		count[line]++
	}
	place := func(line string) string {
		text := strings.Join(strings.Fields(digits.ReplaceAllString(line, "#")), " ")
		return string([]rune(text)[:min(60, len([]rune(text)))])
	}
	for _, line := range y {
		if count[line]--; count[line] < 0 && len(found) < mostPlaces {
			found = append(found, difference{place(line), "", line})
		}
	}
	for _, line := range x {
		if count[line] > 0 && len(found) < mostPlaces {
			count[line]--
			at := slices.IndexFunc(found, func(d difference) bool { return d.place == place(line) && d.old == "" })
			if at >= 0 {
				found[at].old = line
			} else {
				found = append(found, difference{place(line), line, ""})
			}
		}
	}
	if len(found) == 0 {
		found = append(found, difference{"(order of lines)", "", ""})
	}
	return found
}
