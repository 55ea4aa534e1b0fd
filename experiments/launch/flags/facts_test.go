package flags_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments/launch/flags"
)

var update = flag.Bool("update", false, "write docs/flags.md")

var release = regexp.MustCompile(`^(.*?)(-file)?-(\d.*)\.tsv$`)

// fact is a flag as an argument parser has it.
type fact struct {
	name, kind string
	aliases    []string
}

func facts(t *testing.T, file string) (list []fact) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || len(parts) != 3 {
			continue
		}
		f := fact{name: parts[0], kind: parts[2]}
		if parts[1] != "" {
			f.aliases = strings.Split(parts[1], ",")
		}
		list = append(list, f)
	}
	return list
}

// Every flag of every parser that was read is in its table, with the same kind of value: a switch takes none.
func TestTablesHaveAllFlagsOfTheParsers(t *testing.T) {
	files, err := filepath.Glob("testdata/*.tsv")
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	kinds := map[string][]string{} // by engine and flag: a few are switches in some releases only
	for _, file := range files {
		name := release.FindStringSubmatch(filepath.Base(file))
		if name == nil {
			t.Errorf("%s: the name is not ENGINE-RELEASE.tsv", file)
			continue
		}
		table, err := flags.Of(name[1])
		if err != nil {
			t.Fatal(err)
		}
		find := table.Find
		if name[2] != "" {
			find = table.FileKey
		}
		list := facts(t, file)
		if len(list) < 5 {
			t.Errorf("%s has %d flags", file, len(list))
		}
		for _, want := range list {
			for _, spelled := range append([]string{want.name}, want.aliases...) {
				got, negated := find(spelled)
				switch {
				case got == nil:
					t.Errorf("%s: %s is not in %s.yaml", file, spelled, name[1])
				case name[2] == "" && !negated:
					key := name[1] + " " + got.Name
					kinds[key] = append(kinds[key], want.kind)
				}
			}
		}
	}
	for key, list := range kinds {
		engine, name, _ := strings.Cut(key, " ")
		table, err := flags.Of(engine)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := table.Find(name)
		fits := func(kind string) bool { return (kind == "bool") == (f.Type == "bool") }
		if !slices.ContainsFunc(list, fits) {
			t.Errorf("%s is %s in %s.yaml, and %s in the parsers", name, f.Type, engine, strings.Join(list, ", "))
		}
	}
}

// Every flag of a table is in the facts of a release, so that a table has no invented names.
func TestFlagsOfTablesAreFacts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.tsv")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]map[string]bool{}
	for _, file := range files {
		name := release.FindStringSubmatch(filepath.Base(file))
		if name == nil {
			t.Fatal(file)
		}
		known := read[name[1]+name[2]]
		if known == nil {
			known = map[string]bool{}
			read[name[1]+name[2]] = known
		}
		for _, f := range facts(t, file) {
			known[f.name] = true
		}
	}
	tables, err := flags.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		for _, part := range []struct {
			suffix string
			list   []flags.Flag
		}{{"", table.Flags}, {"-file", table.File}} {
			known := read[table.Engine+part.suffix]
			if known == nil {
				continue // parsers of files that take the names of flags
			}
			for _, f := range part.list {
				object, _, _ := strings.Cut(f.Name, ".") // parsers list objects, of which these are keys
				if !known[f.Name] && !known[object] && !slices.ContainsFunc(f.Aliases, func(a string) bool { return known[a] }) {
					t.Errorf("%s: %s is in no file of testdata", table.Engine, f.Name)
				}
			}
		}
	}
}

// Every entry has one effect.
func TestEntriesHaveOneEffect(t *testing.T) {
	tables, err := flags.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		for _, f := range slices.Concat(table.Flags, table.File, table.Env) {
			n := 0
			for _, effect := range []string{f.Sets, f.Rule, f.None, f.Unmodelled} {
				if effect != "" {
					n++
				}
			}
			if n != 1 || !slices.Contains([]string{"bool", "int", "float", "str", "json", "list"}, f.Type) {
				t.Errorf("%s %s: %d effects, type %q", table.Engine, f.Name, n, f.Type)
			}
		}
	}
}

const page = "../../../docs/flags.md"

// docs/flags.md is what the tables give; -update writes it.
func TestFlagsPage(t *testing.T) {
	text := flagsPage(t)
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(page); err != nil || string(data) != text {
		t.Errorf("%s is not as the tables give it (go test ./experiments/launch/flags -update writes it): %v", page, err)
	}
}

func flagsPage(t *testing.T) string {
	t.Helper()
	tables, err := flags.All()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(`# Flags of engines

Generated from the tables in [experiments/launch/flags](../experiments/launch/flags).

` + "`clifftop import`" + ` accounts for every flag of a launch line. It sets a key of the scenario, is translated by a rule,
has no influence on what is simulated, or has an influence that is not modelled. The flags of each release come from
the argument parser in the engine's repository. A test compares the tables with them.

| program | flags | set a key | rule | no influence | not modelled |
|---|---|---|---|---|---|
`)
	for _, table := range tables {
		n := map[flags.Effect]int{}
		all := slices.Concat(table.Flags, table.File, table.Env)
		for _, f := range all {
			n[f.Effect()]++
		}
		fmt.Fprintf(&b, "| [%s](#%s) | %d | %d | %d | %d | %d |\n", table.Program, table.Engine, len(all), n[flags.Key],
			n[flags.Rule], n[flags.None], n[flags.Unmodelled])
	}
	for _, table := range tables {
		fmt.Fprintf(&b, "\n## %s\n\n`%s`", table.Engine, table.Program)
		if table.Base != "" {
			fmt.Fprintf(&b, " takes the flags of [%s](#%s) too", table.Base, table.Base)
		}
		b.WriteString(".\n")
		sources(&b, table)
		for _, part := range []struct {
			title string
			list  []flags.Flag
		}{{"flag", table.Flags}, {"key of the configuration file", table.File}, {"environment variable", table.Env}} {
			if len(part.list) > 0 {
				entries(&b, part.title, part.list)
			}
		}
	}
	return b.String()
}

// sources lists where the flags were read.
func sources(b *strings.Builder, table *flags.Table) {
	if len(table.Sources) == 0 {
		return
	}
	b.WriteString("\n| release | read in | commit |\n|---|---|---|\n")
	for _, s := range table.Sources {
		commit := s.Commit[:min(len(s.Commit), 8)]
		fmt.Fprintf(b, "| %s | %s `%s` | %s |\n", s.Release, s.Repository, s.File, cmp.Or(commit, "a copy without its commit"))
	}
}

// entries writes a table of flags.
func entries(b *strings.Builder, title string, list []flags.Flag) {
	fmt.Fprintf(b, "\n| %s | also | type | releases | meaning |\n|---|---|---|---|---|\n", title)
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y flags.Flag) int { return strings.Compare(x.Name, y.Name) })
	for _, f := range list {
		meaning := f.Meaning()
		switch f.Effect() {
		case flags.Key:
			meaning = "sets `" + f.Sets + "`"
		case flags.Rule:
			meaning = "rule: " + f.Rule
		}
		var also []string
		for _, name := range f.Aliases {
			also = append(also, "`"+name+"`")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", f.Name, strings.Join(also, ", "), f.Type,
			cmp.Or(f.Releases, "all"), strings.ReplaceAll(meaning, "|", `\|`))
	}
}
