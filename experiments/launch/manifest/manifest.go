// Package manifest reads files that launch serving engines: shell scripts and command lines, Dockerfiles, compose files,
// Kubernetes objects, and values of Helm charts. Each kind of file has one Go file and one entry in kinds.
package manifest

import (
	"bytes"
	"fmt"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario/yamldoc"
)

// Options say what a file finds around it, and which of several launches is wanted.
type Options struct {
	launch.ScriptOptions
	// Line chooses one of several engines that are alternatives, from 1; 0 is none.
	Line int
}

// kind is a kind of file.
type kind struct {
	// name is what messages call it.
	name string
	// is reports whether a file is of the kind, by its name or its content.
	is func(name string, data []byte) bool
	// read reads it.
	read func(name string, data []byte, o Options) (*launch.System, error)
}

// kinds are the kinds of files. The first that fits is taken; the last one fits everything.
func kinds() []kind {
	return []kind{
		{"a shell script or a command line", func(string, []byte) bool { return true }, readScript},
	}
}

// maxBytes limits a file.
const maxBytes = 4 << 20

// Read reads a file of any kind. The error is a [yamldoc.Faults] with the place of what is wrong.
func Read(name string, data []byte, o Options) (*launch.System, error) {
	switch {
	case len(data) > maxBytes:
		return nil, yamldoc.Faults{{Where: name, Problem: fmt.Sprintf("the file is too long (want at most %d MiB)", maxBytes>>20)}}
	case bytes.IndexByte(data, 0) >= 0:
		return nil, yamldoc.Faults{{Where: name, Problem: "this is not text (want a script, a manifest or a Dockerfile)"}}
	case yamldoc.Blank(data):
		return nil, yamldoc.Faults{{Where: name, Problem: "the file is empty (want a launch line or a manifest)"}}
	}
	for _, k := range kinds() {
		if k.is(name, data) {
			return k.read(name, data, o)
		}
	}
	return nil, yamldoc.Faults{{Where: name, Problem: "no kind of file fits"}}
}

// readScript reads a shell script.
func readScript(name string, data []byte, o Options) (*launch.System, error) {
	commands, notes, err := launch.ReadScript(name, data, o.ScriptOptions)
	if err != nil {
		return nil, asFaults(err)
	}
	return launch.Assemble(name, commands, notes, o.Line)
}

// asFaults makes faults of an error.
func asFaults(err error) error {
	if yamldoc.BadInput(err) {
		return err
	}
	return yamldoc.Faults{{Problem: err.Error()}}
}
