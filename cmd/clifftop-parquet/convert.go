package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

type kind int

// The kinds, from narrow to wide.
const (
	whole  kind = iota // int64
	number             // double
	text               // string
)

func (k kind) String() string { return [...]string{"a whole number", "a number", "a text"}[k] }

// textColumns are text even if their first rows are empty.
var textColumns = []string{"outcome", "reason", "ending", "retry_causes", "class", "content", "stage", "name", "path",
	"metric", "verdict"}

const (
	sampled  = 4096    // rows that determine the types of the columns
	rowGroup = 1 << 17 // rows
)

// convert converts CSV to Parquet with the same columns. Empty cells become null. The type of a column is the
// narrowest one that fits its first rows; a later cell that does not fit is an error.
func convert(w io.Writer, in io.Reader, name string) (rows int64, err error) {
	r := csv.NewReader(in)
	r.Comment, r.ReuseRecord = '#', false
	head, err := r.Read()
	if errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("%s is empty (want a header and rows)", name)
	} else if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	head = slices.Clone(head)
	var first [][]string
	for len(first) < sampled {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		first = append(first, row)
	}
	kinds := kindsOf(head, first)
	rowType, err := structOf(head, kinds)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	out := parquet.NewWriter(w, parquet.SchemaOf(reflect.New(rowType).Interface()),
		parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowGroup))
	r.ReuseRecord = true
	row := reflect.New(rowType)
	write := func(cells []string) error {
		for i, c := range cells {
			if err := set(row.Elem().Field(i), kinds[i], c); err != nil {
				line, column := r.FieldPos(i)
				return fmt.Errorf("%s:%d:%d: %s: %q is not %v, the type of the column in the first rows", name, line,
					column, head[i], c, kinds[i])
			}
		}
		rows++
		return out.Write(row.Interface())
	}
	for _, cells := range first {
		if err := write(cells); err != nil {
			return rows, err
		}
	}
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, out.Close()
		}
		if err == nil {
			err = write(cells)
		}
		if err != nil {
			return rows, err
		}
	}
}

// kindsOf determines the types of the columns from rows. A column without values is of type number.
func kindsOf(head []string, rows [][]string) []kind {
	kinds := make([]kind, len(head))
	for i, name := range head {
		if slices.Contains(textColumns, strings.TrimSpace(name)) {
			kinds[i] = text
			continue
		}
		known := false
		for _, row := range rows {
			for row[i] != "" && set(reflect.New(fieldTypes[kinds[i]]).Elem(), kinds[i], row[i]) != nil {
				kinds[i]++
			}
			known = known || row[i] != ""
		}
		if !known {
			kinds[i] = number
		}
	}
	return kinds
}

var fieldTypes = [...]reflect.Type{
	whole: reflect.TypeFor[*int64](), number: reflect.TypeFor[*float64](), text: reflect.TypeFor[*string](),
}

// structOf makes a struct type with one field per column, in order.
func structOf(head []string, kinds []kind) (reflect.Type, error) {
	seen := map[string]bool{}
	fields := make([]reflect.StructField, len(head))
	for i, name := range head {
		name = strings.TrimSpace(name)
		if name == "" || name == "-" || seen[name] || strings.ContainsAny(name, ",\"`") {
			return nil,
				fmt.Errorf(`column %d: name %q is not allowed (want a unique name other than "-", without comma `+
					"or quote)", i+1, name)
		}
		seen[name] = true
		fields[i] = reflect.StructField{
			Name: "C" + strconv.Itoa(i), Type: fieldTypes[kinds[i]],
			Tag: reflect.StructTag(fmt.Sprintf("parquet:%q", name+",optional")),
		}
	}
	return reflect.StructOf(fields), nil
}

// set sets a field to the value of a cell; empty means null.
func set(field reflect.Value, k kind, cell string) error {
	if cell == "" {
		field.SetZero()
		return nil
	}
	var value any
	var err error
	switch k {
	case whole:
		var v int64
		v, err = strconv.ParseInt(cell, 10, 64)
		value = &v
	case number:
		var v float64
		v, err = strconv.ParseFloat(cell, 64)
		value = &v
	default:
		v := strings.Clone(cell)
		value = &v
	}
	if err == nil {
		field.Set(reflect.ValueOf(value))
	}
	return err
}
