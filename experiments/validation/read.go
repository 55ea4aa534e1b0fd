package validation

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/input"
)

// Reference is a file of measured runs.
type Reference struct {
	// Name is the file's, without its folder.
	Name string
	// Rows are the runs, in the order of the file.
	Rows []*Row
	// Notes say what was ignored.
	Notes []string

	folder string // that request files are relative to
}

// maxCell bounds a cell, so that a file that is no table is refused early.
const maxCell = 1 << 16

func open(path string) (*Reference, error) {
	f, err := input.Open(path)
	if err != nil {
		return nil, readFault(path, scenario.PlainFileError(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, readFault(path, "this is a folder (want a CSV file)")
	}
	return Read(path, f)
}

// Read reads measured runs. The first line names the columns: those of [Row], in any order, or names that benchmarks
// have for them; others are ignored with a note. The path serves messages, and is where request files are looked for.
// A file NAME-flags.csv beside it has further cells, by run_id: the options of launch scripts.
//
// A file without the columns that every row needs is refused. What is wrong with a row's cells
// is kept in its Faults.
func Read(path string, r io.Reader) (*Reference, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	head, err := in.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, readFault(path, "the file is empty (want a line of column names and a row for each measured run)")
	case err != nil:
		return nil, readFault(path, csvProblem(err))
	}
	ref := &Reference{Name: filepath.Base(path), folder: filepath.Dir(path)}
	columns, err := ref.columns(path, head)
	if err != nil {
		return nil, err
	}
	flags, err := readSidecar(path)
	if err != nil {
		return nil, err
	}
	_, byName := schema()
	seen, merged := map[string]int{}, 0
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, readFault(path, csvProblem(err))
		}
		line, _ := in.FieldPos(0)
		row := readRow(line, head, columns, cells)
		if row.ID == "" {
			row.ID = fmt.Sprintf("line-%d", line)
		}
		if cells := flags[row.ID]; cells != nil {
			row.merge(cells, byName)
			merged++
		}
		normaliser{row}.run()
		if first := seen[row.ID]; first > 0 {
			row.fault("run_id: %s is also the name of line %d (want names that differ)", row.ID, first)
		} else {
			seen[row.ID] = line
		}
		ref.Rows = append(ref.Rows, row)
	}
	if len(ref.Rows) == 0 {
		return nil, readFault(path, "there are no rows below the column names")
	}
	if merged > 0 {
		ref.Notes = append(ref.Notes, fmt.Sprintf("the launch options of %d rows are those of %s", merged,
			filepath.Base(sidecar(path))))
	}
	return ref, nil
}

// columns matches the first line with the known columns.
func (ref *Reference) columns(path string, head []string) ([]*column, error) {
	if len(head) > 0 {
		head[0] = strings.TrimPrefix(head[0], "\ufeff")
	}
	_, byName := schema()
	var unknown []string
	var list []*column
	seen, own := map[string]bool{}, map[string]bool{}
	for i, name := range head {
		head[i] = strings.TrimSpace(name)
		own[head[i]] = true
	}
	for i, name := range head {
		c, ok := columnNamed(name, byName)
		_, exact := byName[name]
		if ok && !exact && (own[c.name] || seen[c.name]) {
			ok = false // the column stands under its own name too
		}
		switch {
		case seen[name]:
			return nil, readFault(path, fmt.Sprintf("line 1: the column %s is there twice", yamldoc.Short(name)))
		case ok:
			list = append(list, &c)
			head[i], name = c.name, c.name
		default:
			unknown = append(unknown, yamldoc.Short(name))
			list = append(list, nil)
		}
		seen[name] = true
	}
	_, required := columns()
	missing := slices.DeleteFunc(slices.Clone(required), func(name string) bool { return seen[name] })
	if len(missing) > 0 {
		return nil, readFault(path, fmt.Sprintf("line 1: no column %s (want %s, and what was measured, such as "+
			"ttft_mean_ms)",
			strings.Join(missing, ", "), strings.Join(required, ", ")))
	}
	if len(unknown) > 0 {
		ref.Notes = append(ref.Notes, fmt.Sprintf("columns without a meaning here are ignored: %s",
			strings.Join(unknown, ", ")))
	}
	return list, nil
}

func readRow(line int, head []string, columns []*column, cells []string) *Row {
	row := &Row{Line: line}
	if len(cells) != len(head) {
		row.fault("%d cells below %d columns", len(cells), len(head))
	}
	v := reflect.ValueOf(row).Elem()
	for i, cell := range cells {
		if i >= len(columns) || columns[i] == nil {
			continue
		}
		cell = strings.TrimSpace(cell)
		if unknownCells[strings.ToLower(cell)] {
			if columns[i].want {
				row.fault("%s: the cell is empty", head[i])
			}
			continue
		}
		if len(cell) > maxCell {
			row.fault("%s: the cell has more than %d bytes", head[i], maxCell)
			continue
		}
		row.set(*columns[i], v.FieldByIndex(columns[i].index), cell)
	}
	return row
}

func (r *Row) set(c column, to reflect.Value, cell string) {
	if _, text := to.Interface().(string); text {
		to.SetString(cell)
		return
	}
	if strings.EqualFold(cell, "none") || strings.EqualFold(cell, "auto") || strings.EqualFold(cell, "default") {
		return
	}
	x, err := number(c.name, cell)
	if c.scale > 0 {
		x *= c.scale
	}
	switch p := to.Addr().Interface().(type) {
	case **float64:
		if math.IsInf(x, 1) && c.name == "rate_rps" {
			return // all requests at once, as many as the concurrency
		}
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) || x < 0 {
			r.fault("%s: %q is not allowed (want a number, 0 or more)", c.name, yamldoc.Short(cell))
			return
		}
		*p = &x
	case **int:
		if err != nil || x != math.Trunc(x) || x < 0 || x > 1e12 {
			r.fault("%s: %q is not allowed (want a whole number, 0 or more)", c.name, yamldoc.Short(cell))
			return
		}
		n := int(x)
		*p = &n
	}
}

func (r *Row) fault(format string, args ...any) {
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

// readFault is an error about a file that the user named.
func readFault(path, problem string) error {
	return yamldoc.Faults{{Where: path, Problem: problem}}
}

// csvProblem is an error of the CSV reader in one line.
func csvProblem(err error) string {
	var p *csv.ParseError
	if errors.As(err, &p) {
		return fmt.Sprintf("line %d: %v (want comma-separated values)", p.Line, p.Err)
	}
	return scenario.PlainFileError(err)
}
