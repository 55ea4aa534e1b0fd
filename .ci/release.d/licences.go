package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licence is a text under which a part is distributed.
type licence struct {
	file string   // where the text is from, relative to the part
	own  bool     // it is for the whole part, not for some files of it
	ids  []string // the SPDX identifiers of the licences in it; none for a notice or a grant of patents
	text string
}

// known are the licences that a part may have, each with a phrase that only its text has. Spaces of any kind match each
// other.
var known = []struct{ id, phrase string }{
	{"Apache-2.0", "Apache License Version 2.0, January 2004"},
	{"BSL-1.0", "Boost Software License - Version 1.0"},
	{"CC-BY-4.0", "Creative Commons Attribution 4.0 International Public License"},
	{"FTL", "The FreeType Project LICENSE"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy of this software"},
	{"OFL-1.1", "SIL OPEN FONT LICENSE Version 1.1"},
}

const redistribution = "Redistribution and use in source and binary forms"

// withoutEndorsement is the third clause of the BSD licence, which has many wordings.
var withoutEndorsement = regexp.MustCompile(
	`(?i)neither the names? of|may not be used to endorse|names of its contributors`)

// identify returns the SPDX identifiers of the licences in a text, sorted.
func identify(text string) []string {
	text = strings.Join(strings.Fields(text), " ")
	var ids []string
	for _, k := range known {
		if strings.Contains(text, k.phrase) {
			ids = append(ids, k.id)
		}
	}
	switch {
	case !strings.Contains(text, redistribution):
	case withoutEndorsement.MatchString(text):
		ids = append(ids, "BSD-3-Clause")
	default:
		ids = append(ids, "BSD-2-Clause")
	}
	slices.Sort(ids)
	return ids
}

// licenceFile matches the names of files with the terms of a part.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)`)

// chosen are the files with the terms of modules that offer a choice, in place of those that are found.
var chosen = map[string][]string{
	"github.com/golang/freetype": {"LICENSE", "licenses/ftl.txt"},
}

// licences returns the texts under which a module is distributed: those in its root, in the folders of its linked
// packages and above them, and in a folder of third-party licences.
func (m *module) licences() ([]licence, error) {
	files, err := m.licenceFiles()
	if err != nil {
		return nil, err
	}
	var texts []licence
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(m.Dir, file))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		own := chosen[m.Path] != nil || filepath.Dir(file) == "."
		texts = append(texts, licence{filepath.ToSlash(file), own, identify(string(data)), clean(string(data))})
	}
	if expression(texts) == "" {
		return nil, fmt.Errorf("%s %s: no licence in %q that .ci/release knows", m.Path, m.Version, files)
	}
	return texts, nil
}

func (m *module) licenceFiles() ([]string, error) {
	if files := chosen[m.Path]; files != nil {
		return files, nil
	}
	folders := map[string]bool{}
	for _, dir := range m.packages {
		for ; len(dir) >= len(m.Dir); dir = filepath.Dir(dir) {
			folders[dir] = true
		}
	}
	folders[filepath.Join(m.Dir, "THIRD_PARTY_LICENSES")] = true
	var files []string
	for folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		third := filepath.Base(folder) == "THIRD_PARTY_LICENSES"
		for _, e := range entries {
			if !e.IsDir() && (third || licenceFile.MatchString(e.Name())) {
				name, err := filepath.Rel(m.Dir, filepath.Join(folder, e.Name()))
				if err != nil {
					return nil, err
				}
				files = append(files, name)
			}
		}
	}
	slices.SortFunc(files, func(a, b string) int {
		if d := strings.Count(a, string(filepath.Separator)) - strings.Count(b, string(filepath.Separator)); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return files, nil
}

// expression returns the SPDX expression of the licences of a part; empty if none is known.
func expression(texts []licence) string {
	var ids []string
	for _, l := range texts {
		if l.own {
			ids = append(ids, l.ids...)
		}
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " AND ")
}

// clean returns a text with plain line ends, no space at the end of lines, and no empty lines around it.
func clean(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(strings.TrimPrefix(lines[i], "\ufeff"), " \t\f\r")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
