package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"clifftop/report/page/assets"
	"clifftop/workload"
)

// part is something in the programs that others wrote.
type part struct {
	name, version string // no version: that of the toolchain
	url           string // a package URL, if there is a type for it
	texts         []licence
}

// goPart returns the notices of the standard library, the runtime and the script that starts programs in a browser.
func goPart(version string) (part, error) {
	root, err := goCommand(targets[0], "env", "GOROOT")
	if err != nil {
		return part{}, err
	}
	url := "pkg:golang/std@" + strings.TrimPrefix(version, "go")
	p := part{name: "Go standard library and runtime", version: version, url: url}
	for _, file := range []string{"LICENSE", "PATENTS"} {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), file))
		if err != nil {
			return part{}, fmt.Errorf("the licence of Go: %w (want a toolchain from https://go.dev/dl)", err)
		}
		p.texts = append(p.texts, licence{file, true, identify(string(data)), clean(string(data))})
	}
	return p, nil
}

var uPlotVersion = regexp.MustCompile(`uPlot \(v([0-9.]+)\)`)

// uPlotPart returns the notices of the charting library that pages have in them.
func uPlotPart() (part, error) {
	m := uPlotVersion.FindStringSubmatch(assets.Scripts())
	if m == nil {
		return part{}, fmt.Errorf("report/page/assets: the script of uPlot does not begin with its version")
	}
	text := clean(assets.Licence())
	return part{"uPlot", m[1], "pkg:npm/uplot@" + m[1], []licence{{"LICENSE", true, identify(text), text}}}, nil
}

// part returns the module as a part.
func (m *module) part() (part, error) {
	texts, err := m.licences()
	return part{m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version, texts}, err
}

// partsOf returns Go, uPlot and modules as parts. goVersion is the version to state for Go.
func partsOf(goVersion string, modules []*module) ([]part, error) {
	std, err := goPart(goVersion)
	if err != nil {
		return nil, err
	}
	uPlot, err := uPlotPart()
	if err != nil {
		return nil, err
	}
	parts := []part{std, uPlot}
	for _, m := range modules {
		p, err := m.part()
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

const noticesHead = `# Third-party notices

Clifftop is licensed under the Apache License 2.0; its text is in the file LICENSE. The programs of Clifftop also
contain the parts below, under their own licences. The list covers all programs on all platforms. Charts in PNG and SVG
use the Liberation fonts, which are part of codeberg.org/go-fonts/liberation under the SIL Open Font License.

This file is generated: ` + "`.ci/release notices`" + ` writes it anew.

| Part | Version | Licence | Texts |
|---|---|---|---|
`

const noticesData = `
## Data

Presets of traffic are statistics of public data. Kernel times in the catalog are constants that were fitted to
measurements published in NVIDIA's [aiconfigurator](https://github.com/ai-dynamo/aiconfigurator) (Apache-2.0).

| Preset | Source |
|---|---|
`

// writeNotices writes the notices of all parts: a table, the sources of data, and each text once.
func writeNotices(w io.Writer, parts []part, presets []workload.Preset) error {
	type entry struct {
		text  string
		users []string
	}
	var texts []*entry
	var b strings.Builder
	b.WriteString(noticesHead)
	for _, p := range parts {
		var numbers []string
		for _, l := range p.texts {
			words := strings.Fields(l.text)
			i := slices.IndexFunc(texts, func(e *entry) bool { return slices.Equal(strings.Fields(e.text), words) })
			if i < 0 {
				i = len(texts)
				texts = append(texts, &entry{text: l.text})
			}
			user := p.name
			if strings.Contains(l.file, "/") {
				user += " (" + l.file + ")"
			}
			if !slices.Contains(texts[i].users, user) {
				texts[i].users = append(texts[i].users, user)
			}
			if number := fmt.Sprint(i + 1); !slices.Contains(numbers, number) {
				numbers = append(numbers, number)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", p.name, p.version, expression(p.texts), strings.Join(numbers, ", "))
	}
	b.WriteString(noticesData)
	for _, p := range presets {
		if p.Provenance != "judgement" {
			fmt.Fprintf(&b, "| %s | %s |\n", p.Name, p.Source)
		}
	}
	b.WriteString("\n## Texts\n")
	for i, e := range texts {
		fmt.Fprintf(&b, "\n### Text %d\n\nFor %s.\n\n```\n%s\n```\n", i+1, strings.Join(e.users, ", "), e.text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// generateNotices writes the notices of all programs.
func generateNotices(w io.Writer) error {
	modules, err := shipped()
	if err != nil {
		return err
	}
	parts, err := partsOf("", modules)
	if err != nil {
		return err
	}
	presets, err := workload.Presets()
	if err != nil {
		return err
	}
	return writeNotices(w, parts, presets)
}
