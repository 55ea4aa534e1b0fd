// Package catalog contains language models and accelerators: embedded records, one file each, in which every figure
// has its source. The source "recalled (verify)" marks figures from general knowledge; prices are placeholders.
// README.md explains how to add a GPU or a model.
//
// Start with [LLM] and [GPU], which look up records by name. Names are matched without regard to case; '_' and
// blanks count as '-'. Hugging Face IDs and short names such as "H100" work too.
//
//	llm, err := catalog.LLM("meta-llama/Llama-3.1-8B-Instruct")
//	gpu, err := catalog.GPU("H100")
//
// [ReadGPU] reads a user's record, in the format of the files in gpus; missing kernel constants become the medians
// over measured GPUs.
package catalog

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"clifftop/model"
)

//go:embed models/*.yaml gpus/*.yaml kernels/*.yaml
var files embed.FS

// The records are parsed once, on first use, and never change.
var (
	loadLLMs = sync.OnceValues(func() ([]model.LLM, error) {
		return load("models", readLLM, func(m model.LLM) string { return m.Name })
	})
	loadGPUs = sync.OnceValues(func() ([]model.GPU, error) {
		return load("gpus", readGPU, func(g model.GPU) string { return g.Name })
	})
	loadShared = sync.OnceValues(readShared)
)

// recordCache has the records read so far, by file. A look-up by file name reads only that file: reading all takes
// 0.1 s, and ten times that in a browser.
var recordCache sync.Map

// record reads a file of a directory and caches the result.
func record[T any](dir, name string, read func(file string, data []byte) (T, error)) (T, error) {
	file := path.Join(dir, name)
	if r, ok := recordCache.Load(file); ok {
		return r.(T), nil
	}
	var none T
	data, err := files.ReadFile(file)
	if err != nil {
		return none, fmt.Errorf("catalog: %w", err)
	}
	r, err := read(file, data)
	if err != nil {
		return none, fmt.Errorf("catalog: %w", err)
	}
	recordCache.Store(file, r)
	return r, nil
}

// fileOf returns the file of the record with exactly this name; empty if there is none.
func fileOf(dir, name string) string {
	file := canonical(name) + ".yaml"
	if strings.Contains(file, "/") {
		return ""
	}
	if _, err := fs.Stat(files, path.Join(dir, file)); err != nil {
		return ""
	}
	return file
}

// load reads all files of a directory and sorts the records by name.
func load[T any](dir string, read func(file string, data []byte) (T, error), name func(T) string) ([]T, error) {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	records := make([]T, 0, len(entries))
	for _, e := range entries {
		r, err := record(dir, e.Name(), read)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return records, nil
}

// LLMs returns the models, sorted by name.
func LLMs() []model.LLM { return mustClone(loadLLMs()) }

// GPUs returns the accelerators, sorted by name.
func GPUs() []model.GPU { return mustClone(loadGPUs()) }

// mustClone returns a copy of embedded records. It panics if a record is broken, which is a bug in the program.
func mustClone[T any](all []T, err error) []T {
	if err != nil {
		panic(err)
	}
	return slices.Clone(all)
}

// LLM returns the model with the given name or alias. The error for an unknown name lists the nearest ones.
func LLM(name string) (model.LLM, error) {
	if file := fileOf("models", name); file != "" {
		return record("models", file, readLLM)
	}
	all, err := loadLLMs()
	if err != nil {
		return model.LLM{}, err
	}
	i, err := find("model", name, len(all), func(i int) (string, []string) { return all[i].Name, all[i].Aliases })
	if err != nil {
		return model.LLM{}, err
	}
	return all[i], nil
}

// GPU returns the accelerator with the given name or alias. The error for an unknown name lists the nearest ones.
func GPU(name string) (model.GPU, error) {
	if file := fileOf("gpus", name); file != "" {
		return record("gpus", file, readGPU)
	}
	all, err := loadGPUs()
	if err != nil {
		return model.GPU{}, err
	}
	i, err := find("gpu", name, len(all), func(i int) (string, []string) { return all[i].Name, all[i].Aliases })
	if err != nil {
		return model.GPU{}, err
	}
	return all[i], nil
}

// decode decodes strict YAML: it rejects unknown keys and wrong types with their position.
func decode(file string, data []byte, into any) error {
	err := yaml.UnmarshalWithOptions(data, into, yaml.Strict())
	if err == nil {
		return nil
	}
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) && unknown.Token != nil && unknown.Token.Position != nil {
		if keys := keysAt(data, unknown.Token.Position.Offset, reflect.TypeOf(into).Elem()); keys != nil {
			return fmt.Errorf("%s:%s (want %s)", file, oneLinePosition(err), strings.Join(keys, ", "))
		}
	}
	return fmt.Errorf("%s:%s", file, oneLinePosition(err))
}

// keysAt returns the keys that a type allows in the mapping with a key at the offset.
func keysAt(data []byte, offset int, t reflect.Type) []string {
	file, err := parser.ParseBytes(data, 0)
	if err != nil || len(file.Docs) == 0 {
		return nil
	}
	return keysIn(file.Docs[0].Body, offset, t)
}

func keysIn(n ast.Node, offset int, t reflect.Type) []string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	values := map[string]reflect.Type{}
	var names []string
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
			names, values[name] = append(names, name), t.Field(i).Type
		}
	}
	mapping, ok := n.(*ast.MappingNode)
	if !ok {
		return nil
	}
	for _, v := range mapping.Values {
		if v.Key.GetToken().Position.Offset == offset {
			return names
		}
		inner := values[v.Key.String()]
		if t.Kind() == reflect.Map {
			inner = t.Elem()
		}
		if inner == nil {
			continue
		}
		if keys := keysIn(v.Value, offset, inner); keys != nil {
			return keys
		}
	}
	return nil
}

// oneLinePosition formats a decoder's error as "line:column: message". It rephrases type errors, which name Go
// fields.
func oneLinePosition(err error) string {
	var wrong *yaml.TypeError
	if errors.As(err, &wrong) && wrong.Token != nil && wrong.Token.Position != nil {
		p := wrong.Token.Position
		return fmt.Sprintf("%d:%d: found %v (want %v)", p.Line, p.Column, wrong.SrcType, wrong.DstType)
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if rest, ok := strings.CutPrefix(line, "["); ok {
		if pos, msg, ok := strings.Cut(rest, "] "); ok {
			return pos + ": " + msg
		}
	}
	return " " + line
}
