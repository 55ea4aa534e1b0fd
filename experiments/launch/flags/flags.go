// Package flags has the launch flags of serving engines: their names in each release, the kinds of their values, and
// their effect on a simulation. A flag sets a key of the scenario, is translated by a rule of package launch, has no
// influence on the simulation, or has an influence that is not modelled. There is no other kind, so that an import can
// account for each flag.
//
// Each engine has one table, such as vllm.yaml. To add a flag, add an entry there; docs/flags.md is generated from it.
// The files in testdata list the flags of releases as their argument parsers have them.
package flags

import (
	"bytes"
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"clifftop/experiments/scenario/yamldoc"
)

// Effect is the effect of a flag on a simulation.
type Effect string

// The effects.
const (
	Key        Effect = "key"        // it sets a key of the scenario
	Rule       Effect = "rule"       // a rule of package launch translates it
	None       Effect = "none"       // it has no influence on the simulation
	Unmodelled Effect = "unmodelled" // its influence is not modelled
)

// Flag is a flag of an engine, a key of its configuration file, or an environment variable.
type Flag struct {
	// Name is the canonical name with dashes and without the leading ones; keys of files have dots between the levels,
	// and environment variables are as they are.
	Name string `yaml:"name"`
	// Aliases are other names, as with Name.
	Aliases []string `yaml:"aliases,omitempty"`
	// Type is bool, int, float, str, json or list. A bool takes no value.
	Type string `yaml:"type"`
	// Releases says in which releases it exists, such as "0.11-" or "-0.9"; empty is all that were read.
	Releases string `yaml:"releases,omitempty"`

	// Sets is the key of the scenario that the flag sets, Values translates its values, and Negated means that it turns
	// the key off.
	Sets    string            `yaml:"key,omitempty"`
	Values  map[string]string `yaml:"values,omitempty"`
	Negated bool              `yaml:"negated,omitempty"`
	// Rule names what a rule of package launch makes of it.
	Rule string `yaml:"rule,omitempty"`
	// None says why the flag has no influence, and Unmodelled what is left out.
	None       string `yaml:"none,omitempty"`
	Unmodelled string `yaml:"unmodelled,omitempty"`
}

// Effect returns the kind of effect.
func (f *Flag) Effect() Effect {
	switch {
	case f.Sets != "":
		return Key
	case f.Rule != "":
		return Rule
	case f.None != "":
		return None
	}
	return Unmodelled
}

// Meaning says in a few words what the flag means.
func (f *Flag) Meaning() string {
	switch f.Effect() {
	case Key:
		return "sets " + f.Sets
	case Rule:
		return f.Rule
	case None:
		return "no influence: " + f.None
	}
	return "not modelled: " + f.Unmodelled
}

// Source says where the flags of a release were read.
type Source struct {
	Release    string `yaml:"release"`
	Repository string `yaml:"repository"`
	Commit     string `yaml:"commit"`
	File       string `yaml:"file"`
}

// Table has the flags of one program.
type Table struct {
	// Engine is the name of the table, such as vllm.
	Engine string `yaml:"engine"`
	// Program is the command that has the flags.
	Program string `yaml:"program"`
	// Sources are the argument parsers that were read.
	Sources []Source `yaml:"sources"`
	// Flags are flags of the command line, File has the keys of the configuration file, and Env environment variables.
	Flags []Flag `yaml:"flags"`
	File  []Flag `yaml:"file,omitempty"`
	Env   []Flag `yaml:"env,omitempty"`
	// Base names the table whose flags the program takes too.
	Base string `yaml:"base,omitempty"`
	// Abbreviations means that the parser takes the beginning of a name that no other flag begins with (argparse).
	Abbreviations bool `yaml:"abbreviations,omitempty"`

	flags, file, env map[string]*Flag
}

//go:embed *.yaml
var files embed.FS

var tables = sync.OnceValues(func() (map[string]*Table, error) {
	all := map[string]*Table{}
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		t := &Table{}
		if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(t); err != nil && err != io.EOF {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		t.flags, t.file, t.env = index(t.Flags), index(t.File), index(t.Env)
		all[t.Engine] = t
	}
	return all, nil
})

func index(list []Flag) map[string]*Flag {
	m := map[string]*Flag{}
	for i := range list {
		f := &list[i]
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			m[plain(name)] = f
		}
	}
	return m
}

// Of returns the table of a program: vllm, sglang, trtllm, dynamo-vllm, dynamo-sglang, dynamo-trtllm …
func Of(engine string) (*Table, error) {
	all, err := tables()
	if err != nil {
		return nil, err
	}
	t := all[engine]
	if t == nil {
		return nil, fmt.Errorf("there is no table of flags of %q", engine)
	}
	return t, nil
}

// All returns all tables by name.
func All() ([]*Table, error) {
	all, err := tables()
	if err != nil {
		return nil, err
	}
	var list []*Table
	for _, t := range all {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b *Table) int { return strings.Compare(a.Engine, b.Engine) })
	return list, nil
}

// plain is a name in the form in which names are compared: engines take dashes and underscores alike.
func plain(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-"))
}

// Find returns a flag of the command line by a name as written, with or without leading dashes. Negated means that the
// name is the --no- form of a switch. The part after the first dot, as in --compilation-config.mode, is not looked at.
func (t *Table) Find(name string) (f *Flag, negated bool) {
	if f, negated = t.exact(name); f != nil {
		return f, negated
	}
	for u := t; u != nil; u = u.base() {
		if u.Abbreviations {
			return u.abbreviated(plain(name)), false
		}
	}
	return nil, false
}

// abbreviated returns the one flag whose name begins so; nil if there is none or more than one.
func (t *Table) abbreviated(beginning string) (f *Flag) {
	const shortest = 3
	if len(beginning) < shortest {
		return nil
	}
	for name, g := range t.flags {
		if !strings.HasPrefix(name, beginning) || g == f {
			continue
		}
		if f != nil {
			return nil
		}
		f = g
	}
	return f
}

func (t *Table) exact(name string) (f *Flag, negated bool) {
	name, _, _ = strings.Cut(name, ".")
	key := plain(name)
	if f = t.flags[key]; f != nil {
		return f, false
	}
	if rest, ok := strings.CutPrefix(key, "no-"); ok {
		if f = t.flags[rest]; f != nil && f.Type == "bool" {
			return f, true
		}
	}
	if base := t.base(); base != nil {
		return base.exact(name)
	}
	return nil, false
}

// FileKey returns a key of the configuration file by its path with dots. Programs whose file has the flags of the
// command line know these too.
func (t *Table) FileKey(path string) (f *Flag, negated bool) {
	for key := plain(path); ; {
		if f = t.file[key]; f != nil {
			return f, false
		}
		i := strings.LastIndex(key, ".")
		if i < 0 {
			break
		}
		key = key[:i]
	}
	if f, negated = t.exact(path); f != nil {
		return f, negated
	}
	if base := t.base(); base != nil {
		return base.FileKey(path)
	}
	return nil, false
}

// Variable returns an environment variable; nil if it is not known.
func (t *Table) Variable(name string) *Flag {
	if f := t.env[plain(name)]; f != nil {
		return f
	}
	if base := t.base(); base != nil {
		return base.Variable(name)
	}
	return nil
}

func (t *Table) base() *Table {
	if t.Base == "" {
		return nil
	}
	b, err := Of(t.Base)
	if err != nil {
		return nil
	}
	return b
}

// Nearest returns a hint that names the flag most similar to a name, or "".
func (t *Table) Nearest(name string) string {
	var names []string
	for u := t; u != nil; u = u.base() {
		for i := range u.Flags {
			names = append(names, u.Flags[i].Name)
		}
		for i := range u.File {
			names = append(names, u.File[i].Name)
		}
	}
	return yamldoc.DidYouMean(plain(name), names)
}
