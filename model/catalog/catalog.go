// Package catalog contains language models and accelerators: records in YAML, one file each, in which every figure
// has its source. The source "recalled (verify)" marks figures from general knowledge; prices are placeholders.
// README.md explains how to add a GPU or a model. The program embeds the records as the [packed.Table] catalog.bin,
// which go generate writes.
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
	_ "embed"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"clifftop/internal/packed"
	"clifftop/model"
)

// table has the records by the paths of their files without ".yaml".
//
//go:generate go test -run ^TestTable$ . -update
//go:embed catalog.bin
var table packed.Table

// built has what the records decoded so far describe, by key.
var built sync.Map

// record decodes a record, builds what it describes and caches the result. It panics if the record is broken, which
// is a bug in the program.
func record[R, T any](key string, build func(*R) (T, error)) T {
	if v, ok := built.Load(key); ok {
		return v.(T)
	}
	var r R
	table.Read(key, &r)
	v, err := build(&r)
	if err != nil {
		panic(fmt.Errorf("catalog: %s: %w", key, err))
	}
	built.Store(key, v)
	return v
}

// list returns the records of a directory, sorted by name.
func list[R, T any](dir string, build func(*R) (T, error)) []T {
	var records []T
	for _, key := range table.Names(dir) {
		records = append(records, record(key, build))
	}
	return records
}

// LLMs returns the models, sorted by name.
func LLMs() []model.LLM { return list("models/", (*llmRecord).llm) }

// GPUs returns the accelerators, sorted by name.
func GPUs() []model.GPU { return list("gpus/", (*gpuRecord).gpu) }

// LLM returns the model with the given name or alias. The error for an unknown name lists the nearest ones.
func LLM(name string) (model.LLM, error) {
	if key := "models/" + canonical(name); table.Has(key) {
		return record(key, (*llmRecord).llm), nil
	}
	return find("model", name, LLMs(), func(m *model.LLM) (string, []string) { return m.Name, m.Aliases })
}

// GPU returns the accelerator with the given name or alias. The error for an unknown name lists the nearest ones.
func GPU(name string) (model.GPU, error) {
	if key := "gpus/" + canonical(name); table.Has(key) {
		return record(key, (*gpuRecord).gpu), nil
	}
	return find("gpu", name, GPUs(), func(g *model.GPU) (string, []string) { return g.Name, g.Aliases })
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
