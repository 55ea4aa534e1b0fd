package yamldoc

import (
	"errors"
	"fmt"
	"strings"
)

// Place is where a value of a scenario was written.
type Place struct {
	Origin       string // a file's name, or the flag that set the value
	Line, Column int    // from 1; 0 for a flag
}

// String is FILE:LINE:COLUMN, or the flag.
func (p Place) String() string {
	if p.Line == 0 {
		return p.Origin
	}
	return fmt.Sprintf("%s:%d:%d", p.Origin, p.Line, p.Column)
}

// Fault is one thing wrong with a scenario.
type Fault struct {
	// Where is FILE:LINE:COLUMN, or the flag that set the value, with its key for --set; empty for a default.
	Where string
	// Key is the dotted key, such as engine.max_num_seqs; empty for the file as a whole.
	Key string
	// Problem says what was found and what is wanted.
	Problem string
	// Hint proposes a way out; often empty.
	Hint string
	// Excerpt shows the line of the file with a caret below the place; often empty.
	Excerpt string
	// Cause is the error behind it, where there is one, such as a [model.FitError].
	Cause error
}

func (f *Fault) Unwrap() error { return f.Cause }

// Error is one line: where, key and problem.
func (f *Fault) Error() string {
	var b strings.Builder
	for _, part := range []string{f.Where, f.Key} {
		if said := part == f.Key && (f.Where == "--"+f.Key || strings.HasSuffix(f.Where, " "+f.Key)); part != "" &&
			!said {
			b.WriteString(part)
			b.WriteString(": ")
		}
	}
	b.WriteString(f.Problem)
	return b.String()
}

// Faults is everything wrong with a scenario.
type Faults []*Fault

// Error is one line for each fault.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

func (fs Faults) Unwrap() []error {
	errs := make([]error, len(fs))
	for i, f := range fs {
		errs[i] = f
	}
	return errs
}

// BadInput reports whether the error is a fault of the scenario or of what it names, rather than of
// the run.
func BadInput(err error) bool {
	var fs Faults
	var f *Fault
	return errors.As(err, &fs) || errors.As(err, &f)
}

// Excerpt shows a line of a source with a caret under the column. Long lines are left out.
func Excerpt(source []byte, p Place) string {
	lines := strings.Split(string(source), "\n")
	if p.Line < 1 || p.Line > len(lines) {
		return ""
	}
	text := strings.ReplaceAll(strings.TrimRight(lines[p.Line-1], "\r"), "\t", " ")
	if len(text) > 100 || p.Column < 1 || p.Column > len(text)+1 {
		return ""
	}
	number := fmt.Sprintf("%5d", p.Line)
	return fmt.Sprintf("%s | %s\n%s | %s^", number, text,
		strings.Repeat(" ", len(number)), strings.Repeat(" ", p.Column-1))
}

// DidYouMean is a hint that names the candidate nearest to what was written, or is empty when none
// is near.
func DidYouMean(written string, candidates []string) string {
	best, distance := "", len(written)/3+2
	for _, c := range candidates {
		d := editDistance(strings.ToLower(written), strings.ToLower(c))
		if len(written) >= 3 && strings.HasPrefix(strings.ToLower(c), strings.ToLower(written)) {
			d = min(d, 1) // it was only begun
		}
		if d < distance {
			best, distance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// editDistance counts the insertions, deletions, substitutions and swaps of neighbours that turn
// a into b (optimal string alignment).
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	older, old, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		old[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(b)]
}

// OneOf joins names for a message: "a, b, c or d". Of a list longer than a message it names the first ones.
func OneOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	if text := strings.Join(names[:last], ", ") + " or " + names[last]; len(text) <= longestList {
		return text
	}
	text, n := firstOf(names, longestList-len(" or 10 others"))
	return fmt.Sprintf("%s or %d others", text, n)
}

// longestList is the most characters of a list of names in a message.
const longestList = 95

// firstOf joins as many names as fit into so many characters, and counts the others.
func firstOf(names []string, most int) (text string, others int) {
	text = names[0]
	for i, name := range names[1:] {
		if len(text)+len(name)+2 > most {
			return text, len(names) - 1 - i
		}
		text += ", " + name
	}
	return text, 0
}

// Join appends faults, but for those that are there.
func (fs Faults) Join(more Faults) Faults {
	for _, f := range more {
		if !strings.Contains("\n"+fs.Error()+"\n", "\n"+f.Error()+"\n") {
			fs = append(fs, f)
		}
	}
	return fs
}

// addExcerpt shows the line of a fault whose place is known as text only.
func addExcerpt(f *Fault, file string, data []byte) {
	p := Place{Origin: file}
	if len(f.Where) > len(file) {
		if n, _ := fmt.Sscanf(f.Where[len(file):], ":%d:%d", &p.Line, &p.Column); n == 2 {
			f.Excerpt = Excerpt(data, p)
		}
	}
}
