// Package catalog knows language models and accelerators: embedded records, one file each, in which
// every figure has its source. A figure whose source says "recalled (verify)" was written from
// general knowledge; prices are placeholders.
//
// [LLM] and [GPU] look records up by name. Names are matched without regard to case, and '_' and
// blanks count as '-'; Hugging Face ids and short names such as "H100" are known too.
//
//	llm, err := catalog.LLM("meta-llama/Llama-3.1-8B-Instruct")
//	gpu, err := catalog.GPU("H100")
//
// [ReadGPU] reads a record of one's own. Its format is that of the files in the directory gpus; the
// kernel constants that it leaves out are filled in with the medians over measured GPUs.
package catalog

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"clifftop/model"

	"github.com/goccy/go-yaml"
)

//go:embed models/*.yaml gpus/*.yaml kernels/*.yaml
var files embed.FS

// The records are parsed once, on first use, and never change.
var (
	loadLLMs = sync.OnceValues(func() ([]model.LLM, error) {
		return load("models", readLLM, func(m model.LLM) string { return m.Name })
	})
	loadGPUs = sync.OnceValues(func() ([]model.GPU, error) {
		return load("gpus", ReadGPU, func(g model.GPU) string { return g.Name })
	})
	loadShared = sync.OnceValues(readShared)
)

// load reads all files of a directory, and orders the records by name.
func load[T any](dir string, read func(file string, data []byte) (T, error), name func(T) string) ([]T, error) {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	records := make([]T, 0, len(entries))
	for _, e := range entries {
		file := path.Join(dir, e.Name())
		data, err := files.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("catalog: %w", err)
		}
		r, err := read(file, data)
		if err != nil {
			return nil, fmt.Errorf("catalog: %w", err)
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return records, nil
}

// LLMs lists the models, ordered by name.
func LLMs() []model.LLM {
	all, _ := loadLLMs() // a broken record fails the tests and every look-up
	return append([]model.LLM(nil), all...)
}

// GPUs lists the accelerators, ordered by name.
func GPUs() []model.GPU {
	all, _ := loadGPUs()
	return append([]model.GPU(nil), all...)
}

// LLM is the model of the given name or alias. For an unknown name the error lists the nearest ones.
func LLM(name string) (model.LLM, error) {
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

// GPU is the accelerator of the given name or alias. For an unknown name the error lists the nearest
// ones.
func GPU(name string) (model.GPU, error) {
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

// decode reads strict YAML: unknown keys and wrong types are refused with their position.
func decode(file string, data []byte, into any) error {
	if err := yaml.UnmarshalWithOptions(data, into, yaml.Strict()); err != nil {
		return fmt.Errorf("%s:%s", file, located(err))
	}
	return nil
}

// located brings a decoder's error to one line, "line:column: message". Its type errors name Go
// fields; they are rephrased.
func located(err error) string {
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
