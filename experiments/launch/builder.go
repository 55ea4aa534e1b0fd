package launch

import (
	"fmt"
	"strconv"
	"strings"

	"clifftop/experiments/launch/flags"
	"clifftop/experiments/scenario/yamldoc"
)

// Account says what became of one flag.
type Account struct {
	// Flag is the flag, and Group the number of its group in the system; -1 is the router.
	Flag  Flag
	Group int
	// Effect is the kind of effect, and Meaning says what it was in a few words.
	Effect  flags.Effect
	Meaning string
}

// builder makes the part of a scenario that one group of replicas needs: the keys below deployment and engine, and the
// keys beside them.
type builder struct {
	system *System
	group  *Group
	line   *Line
	table  *flags.Table
	index  int

	root     *yamldoc.Node
	accounts []Account
	faults   yamldoc.Faults
	assumed  []string // what the result takes for granted, as warnings

	given   map[string]Flag // flags by canonical name, the last one of each
	engines int             // independent engines behind one address of the group
}

// put sets a key of the scenario, with its flag as comment.
func (b *builder) put(key string, value *yamldoc.Node, from Flag) { b.putNote(key, value, from, "") }

func (b *builder) putNote(key string, value *yamldoc.Node, from Flag, remark string) {
	comment := from.Written()
	if remark != "" {
		if comment != "" {
			comment += ": "
		}
		comment += remark
	}
	names := strings.Split(key, ".")
	n := b.root
	for _, name := range names[:len(names)-1] {
		n = n.MapAt(name, from.At)
	}
	value.Comment = comment
	n.Put(names[len(names)-1], from.At, value)
}

// Written is the flag as it was written, with its place, for comments.
func (f Flag) Written() string {
	if f.Name == "" {
		return ""
	}
	text := f.Name
	switch {
	case f.File:
		text += ": " + f.Value
	case f.Env:
		text += "=" + f.Value
	default:
		dashes := "--"
		if f.Dash {
			dashes = "-"
		}
		text = dashes + text
		if !f.Bare {
			text += " " + f.Value
		}
	}
	text = strings.Join(strings.Fields(text), " ")
	const most = 60
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	if f.At.Line > 0 {
		text += fmt.Sprintf(" (%s:%d)", f.At.Origin, f.At.Line)
	}
	return text
}

func (b *builder) account(f Flag, effect flags.Effect, format string, args ...any) {
	b.accounts = append(b.accounts, Account{f, b.index, effect, fmt.Sprintf(format, args...)})
}

func (b *builder) fault(f Flag, hint, format string, args ...any) {
	name := f.Name
	if !f.File && !f.Env {
		name = "--" + name
	}
	b.faults = append(b.faults, &yamldoc.Fault{Where: f.At.String(), Key: name, Problem: fmt.Sprintf(format, args...),
		Hint: hint})
}

// assume notes what the scenario takes for granted because no flag says it.
func (b *builder) assume(format string, args ...any) {
	b.assumed = append(b.assumed, fmt.Sprintf(format, args...))
}

// number, text and truth make values of the scenario.
func number(x float64) *yamldoc.Node {
	return &yamldoc.Node{Kind: yamldoc.Number, Number: x, Text: strconv.FormatFloat(x, 'g', -1, 64)}
}

func whole(n int) *yamldoc.Node {
	return &yamldoc.Node{Kind: yamldoc.Number, Number: float64(n), Text: strconv.Itoa(n), Whole: true}
}

func text(s string) *yamldoc.Node { return &yamldoc.Node{Kind: yamldoc.Text, Text: s} }

func truth(on bool) *yamldoc.Node { return &yamldoc.Node{Kind: yamldoc.Bool, Truth: on} }

// int reads a whole number as vLLM does: 8192, 8k (8000) or 8K (8192).
func (b *builder) int(f Flag) (int, bool) {
	n, ok := humanInt(f.Value)
	if !ok {
		b.noValue(f, "a whole number")
	}
	return n, ok
}

// noValue reports a value that cannot be read: a variable without a value, or another text than wanted.
func (b *builder) noValue(f Flag, want string) {
	if name, ok := variableIn(f.Value); ok {
		b.fault(f, "--env "+name+"=VALUE sets it", "variable %s has no value (want %s)", name, want)
		return
	}
	b.fault(f, "", "%q is not allowed (want %s)", yamldoc.Short(f.Value), want)
}

func variableIn(value string) (string, bool) {
	_, rest, ok := strings.Cut(value, "${")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "}")
	return name, ok
}

// humanInt reads whole numbers with the suffixes of vLLM's human_readable_int: k, m, g and t are powers of 1000, and
// capitals powers of 1024.
func humanInt(text string) (int, bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return n, true
	}
	if text == "" {
		return 0, false
	}
	scale := map[byte]float64{'k': 1e3, 'm': 1e6, 'g': 1e9, 't': 1e12, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30,
		'T': 1 << 40}[text[len(text)-1]]
	x, err := strconv.ParseFloat(text[:len(text)-1], 64)
	if err != nil || scale == 0 || x != x {
		x, err = strconv.ParseFloat(text, 64) // 8192.0, 1e5
		if err != nil || x != float64(int(x)) {
			return 0, false
		}
		return int(x), true
	}
	return int(x * scale), true
}
