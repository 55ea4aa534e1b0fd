package structure

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Places of figures that are not packages.
const (
	all    = "all"    // the whole module
	engine = "engine" // the packages that an engine consists of
)

// key names a figure.
type key struct {
	measure int
	place   string
	what    string
}

func (k key) String() string { return fmt.Sprintf("measure %d, %s, %s", k.measure, k.place, k.what) }

// figures are the values of measures. Less is always better; a figure that is not there is 0.
type figures struct {
	values  map[key]int
	details []detail
}

// detail is a line that says what a figure consists of.
type detail struct {
	measure     int
	place, text string
}

func newFigures() *figures { return &figures{values: map[key]int{}} }

func (f *figures) set(measure int, place, what string, n int) {
	f.values[key{measure, place, what}] = n
}

func (f *figures) get(measure int, place, what string) int {
	return f.values[key{measure, place, what}]
}

// add counts n for a package, for the whole module, and for the engine if the package is a part of it.
func (f *figures) add(measure int, p *pkg, what string, n int) {
	if n == 0 {
		return
	}
	f.values[key{measure, p.short, what}] += n
	f.values[key{measure, all, what}] += n
	if _, judged := f.values[key{measure, engine, what}]; judged && p.within(enginePackages...) {
		f.values[key{measure, engine, what}] += n
	}
}

func (f *figures) detail(measure int, place, text string) {
	f.details = append(f.details, detail{measure, place, text})
}

// measured returns all figures of a module. optional lists the files of optional features. temp is an empty folder for
// the program that measures 1 to 3 run.
func measured(m *module, optional, temp string) (*figures, error) {
	f := newFigures()
	surfaces(m, f)
	holders(m, f)
	fileArrows(m, f)
	for _, measure := range []func(*module, *figures) error{imports, exported, lines} {
		if err := measure(m, f); err != nil {
			return nil, err
		}
	}
	return f, reading(m, f, optional, temp)
}

const header = `# The measures of docs/architecture.md, section "Measures": number, place, figure, value.
# go -C .ci test ./structure -update writes improvements down.
`

// text is the form in which figures are kept.
func (f *figures) text() string {
	keys := slices.SortedFunc(maps.Keys(f.values), func(a, b key) int {
		return cmp.Or(a.measure-b.measure, cmp.Compare(a.place, b.place), cmp.Compare(a.what, b.what))
	})
	var b strings.Builder
	b.WriteString(header)
	for _, k := range keys {
		fmt.Fprintf(&b, "%d %s %s %d\n", k.measure, k.place, strings.ReplaceAll(k.what, " ", "-"), f.values[k])
	}
	return b.String()
}

// readFigures reads what text wrote.
func readFigures(file string) (*figures, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	f, n := newFigures(), 0
	for line := range strings.Lines(string(text)) {
		n++
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if len(words) != 4 {
			return nil, fmt.Errorf("%s:%d: %d words (want number, place, figure, value)", file, n, len(words))
		}
		measure, err := strconv.Atoi(words[0])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		value, err := strconv.Atoi(words[3])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		f.set(measure, words[1], strings.ReplaceAll(words[2], "-", " "), value)
	}
	return f, nil
}

// change is a figure that is not as it was written down.
type change struct {
	key
	before, now int
	isNew       bool // the place had no figure
}

func (c change) worse() bool { return c.now > c.before }

func (c change) String() string {
	before := strconv.Itoa(c.before)
	if c.isNew {
		before = "none"
	}
	return fmt.Sprintf("%s: %s before, %d now", c.key, before, c.now)
}

// changes compares figures with those written down, in order. Measure 14 is not compared.
func changes(before, now *figures) (list []change) {
	keys := maps.Clone(before.values)
	maps.Copy(keys, now.values)
	for k := range keys {
		was, had := before.values[k]
		if n := now.values[k]; n != was && k.measure != 14 {
			list = append(list, change{k, was, n, !had})
		}
	}
	slices.SortFunc(list, func(a, b change) int {
		return cmp.Or(a.measure-b.measure, cmp.Compare(a.place, b.place), cmp.Compare(a.what, b.what))
	})
	return list
}

// improve writes better figures over those written down, and returns the changes that are refused because they are
// worse. A new place is accepted if no figure of its measure for the whole module is worse: code has moved there.
func (f *figures) improve(now *figures) (refused []change) {
	list, grown := changes(f, now), map[int]bool{}
	for _, c := range list {
		grown[c.measure] = grown[c.measure] || c.worse() && (c.place == all || !c.isNew)
	}
	for _, c := range list {
		switch _, there := now.values[c.key]; {
		case c.worse() && (!c.isNew || grown[c.measure]):
			refused = append(refused, c)
		case there:
			f.values[c.key] = c.now
		default:
			delete(f.values, c.key)
		}
	}
	for k, n := range now.values {
		if k.measure == 14 {
			f.values[k] = n
		}
	}
	return refused
}
