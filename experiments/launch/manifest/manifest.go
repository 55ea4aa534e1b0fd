// Package manifest reads files that launch serving engines: shell scripts and command lines, Dockerfiles, compose
// files, Kubernetes objects, and values of Helm charts. README.md says how to add a kind of file.
package manifest

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
)

// Options say what a file finds around it, and which of several launches is wanted.
type Options struct {
	launch.ScriptOptions
	// Line chooses one of several engines that are alternatives, from 1; 0 is none.
	Line int
}

type kind struct {
	// name of the file in messages.
	name string
	// is reports whether a file is of the kind, by its name or its content.
	is func(name string, data []byte) bool
	// read reads it.
	read func(name string, data []byte, o Options) (*launch.System, error)
}

// kinds are the kinds of files. The first that fits is taken; the last one fits everything.
func kinds() []kind {
	return []kind{
		{"a Dockerfile", isDockerfile, readDockerfile},
		{"a page of Markdown", isMarkdown, readMarkdown},
		{"values of vLLM's production stack", isYAML(isProductionStack), readProductionStack},
		{"objects of Kubernetes", isYAML(isKubernetes), readKubernetes},
		{"values of llm-d's modelservice chart", isYAML(isModelService), readModelService},
		{"a configuration of trtllm-serve disaggregated", isYAML(isDisaggregated), readDisaggregated},
		{"a compose file", isYAML(isCompose), readCompose},
		{"another YAML file", isOther, readOther},
		{"a shell script or a command line", func(string, []byte) bool { return true }, readScript},
	}
}

// kindOf is the kind of a file; nil for a script where only manifests are wanted.
func kindOf(name string, data []byte, manifest bool) *kind {
	all := kinds()
	for i := range all {
		if all[i].is(name, data) {
			if manifest && i >= len(all)-2 {
				return nil
			}
			return &all[i]
		}
	}
	return nil
}

// maxBytes limits a file.
const maxBytes = 4 << 20

// Read reads a file of any kind. The error is a [yamldoc.Faults] with the places of the mistakes.
func Read(name string, data []byte, o Options) (*launch.System, error) {
	data = bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	switch {
	case len(data) > maxBytes:
		return nil, yamldoc.Faults{{Where: name,
			Problem: fmt.Sprintf("the file is too long (want at most %d MiB)", maxBytes>>20)}}
	case bytes.IndexByte(data, 0) >= 0:
		return nil, yamldoc.Faults{{Where: name, Problem: "this is not text (want a script, a manifest or a " +
			"Dockerfile)"}}
	case yamldoc.Blank(data):
		return nil, yamldoc.Faults{{Where: name, Problem: "the file is empty (want a launch line or a manifest)"}}
	}
	if line := conflict(data); line > 0 {
		return nil, fault(yamldoc.Place{Origin: name, Line: line, Column: 1}, "", "",
			"the file has the marks of a merge conflict of git (want one of the two sides)")
	}
	return kindOf(name, data, false).read(name, data, o)
}

// conflict is the first line with the mark of a merge conflict; 0 if there is none.
func conflict(data []byte) int {
	n := 0
	for line := range bytes.Lines(data) {
		if n++; bytes.HasPrefix(line, []byte("<<<<<<< ")) {
			return n
		}
	}
	return 0
}

func asFaults(err error) error {
	if yamldoc.BadInput(err) {
		return err
	}
	return yamldoc.Faults{{Problem: err.Error()}}
}

// isYAML is a kind of file that is YAML: not a script that writes such a file.
func isYAML(is func(string, []byte) bool) func(string, []byte) bool {
	return func(name string, data []byte) bool {
		return (yamlName(name) || !isShell(name, data)) && is(name, data)
	}
}

// yamlName reports whether the name of a file is a name of a YAML file, of a template of one, or of a JSON file.
func yamlName(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json", ".tpl"}, strings.ToLower(path.Ext(name)))
}

// isShell reports whether a file is a shell script, by its name, its first line, or a here-document.
func isShell(name string, data []byte) bool {
	return slices.Contains([]string{".sh", ".bash", ".zsh", ".slurm", ".sbatch"}, strings.ToLower(path.Ext(name))) ||
		bytes.HasPrefix(data, []byte("#!")) || hereDocument.Get().Match(data)
}

var hereDocument = pattern.New(`<<-? ?['"]?[A-Za-z_]`)

func isOther(name string, _ []byte) bool { return yamlName(name) }

// readOther says what is wrong with a YAML file that is none of the known kinds.
func readOther(name string, data []byte, o Options) (*launch.System, error) {
	r := newReader(name, data, o)
	docs, err := r.documents(data)
	if err != nil {
		return nil, err
	}
	if at, line, ok := template(name, data); ok {
		return nil, templated(at, line)
	}
	hint := ""
	if len(docs) > 0 && docs[0].Kind == yamldoc.Map && len(docs[0].Fields) > 0 {
		var keys []string
		for _, f := range docs[0].Fields {
			keys = append(keys, f.Name)
		}
		hint = "the keys here are " + yamldoc.OneOf(keys)
		if slices.Contains(keys, "patches") || slices.Contains(keys, "patchesStrategicMerge") ||
			strings.HasPrefix(name, "kustomization.") {
			hint = "kubectl kustomize FOLDER > rendered.yaml, then import rendered.yaml"
		}
		if isEngineConfig(keys) {
			hint += fmt.Sprintf("; for the configuration of an engine import the command, as in 'vllm serve --config "+
				"%s'", name)
		}
	}
	return nil, yamldoc.Faults{{Where: name, Hint: hint, Problem: "this is no manifest that is known (want objects " +
		"of Kubernetes, a compose file, or values of the charts of vLLM's production stack or llm-d)"}}
}

// isEngineConfig reports whether keys belong to the configuration file of an engine.
func isEngineConfig(keys []string) bool {
	return slices.ContainsFunc(keys, func(k string) bool {
		return slices.Contains([]string{"model", "tensor-parallel-size", "tensor_parallel_size", "max-model-len",
			"kv_cache_config", "max_num_tokens", "max_batch_size", "model-path"}, k)
	})
}
