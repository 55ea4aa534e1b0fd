package launch

import (
	"bytes"
	"slices"

	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
)

// ScriptOptions say what a script or a command finds around it.
type ScriptOptions struct {
	// Env are environment variables.
	Env map[string]string
	// Read reads a file beside the script, such as a configuration file; nil reads none.
	Read func(name string) ([]byte, error)
	// FirstLine is the line of the file at which the script begins; 0 is 1.
	FirstLine int
}

// ReadScript returns the engines and routers that a shell script launches, in their order. Configuration files that
// flags name are read from what the script writes, or from beside it.
func ReadScript(file string, data []byte, o ScriptOptions) ([]Command, []Note, error) {
	o.FirstLine = max(o.FirstLine, 1)
	r, err := shell.Run(file, placeholders(dedent(data)), shell.Options{Env: o.Env, Read: o.Read,
		FirstLine: o.FirstLine})
	if err != nil {
		return nil, nil, err
	}
	inner := o
	inner.Read = func(name string) ([]byte, error) {
		if data, ok := r.File(name); ok {
			return data, nil
		}
		if o.Read == nil {
			return nil, errNoFile
		}
		return o.Read(name)
	}
	var list []Command
	var notes []Note
	for _, c := range r.Commands {
		more, remarks, err := ReadCommand(file, c, inner)
		if err != nil {
			return nil, nil, err
		}
		list, notes = append(list, more...), append(notes, remarks...)
	}
	for _, name := range r.Unset {
		notes = append(notes, Note{yamldoc.Place{Origin: file}, noValueNote + name + " has no value in the script"})
	}
	return list, notes, nil
}

// noValueNote begins a note on a variable that a script uses and that has no value.
const noValueNote = "variable "

var placeholder = pattern.New(`([\s=:/"'])<([A-Za-z][A-Za-z0-9_-]*)>([\s:/"']|$)`)

// placeholders makes variables of words such as <head_node_ip>, with which documents ask for a value: a shell would
// take them for files.
func placeholders(script []byte) []byte {
	return placeholder.Get().ReplaceAllFunc(script, func(word []byte) []byte {
		p := placeholder.Get().FindSubmatch(word)
		name := bytes.ReplaceAll(p[2], []byte("-"), []byte("_"))
		return slices.Concat(p[1], []byte("${"), name, []byte("}"), p[3])
	})
}

// dedent takes away the indentation that all lines share, as of a script in a list of a document: the end of a
// here-document must stand at the beginning of its line.
func dedent(data []byte) []byte {
	lines := bytes.Split(data, []byte("\n"))
	shared := -1
	for _, line := range lines {
		text := bytes.TrimLeft(line, " \t")
		indent := len(line) - len(text)
		if len(text) == 0 || indent == 0 && text[0] == '#' {
			continue
		}
		if bytes.ContainsRune(line[:indent], '\t') {
			return data
		}
		if shared < 0 || indent < shared {
			shared = indent
		}
	}
	if shared <= 0 {
		return data
	}
	for i, line := range lines {
		if !bytes.HasPrefix(line, []byte("#")) {
			lines[i] = line[min(shared, len(line)):]
		}
	}
	return bytes.Join(lines, []byte("\n"))
}
