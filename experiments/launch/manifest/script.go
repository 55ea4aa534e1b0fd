package manifest

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
)

// readScript reads a shell script or a command line. Where it starts no engine itself, the manifest that it gives to
// kubectl, docker compose, helm or trtllm-serve disaggregated is read.
func readScript(name string, data []byte, o Options) (*launch.System, error) {
	commands, notes, err := launch.ReadScript(name, data, o.ScriptOptions)
	if err != nil {
		return nil, asFaults(err)
	}
	if !slices.ContainsFunc(commands, func(c launch.Command) bool { return c.Line != nil }) {
		if s, err := readApplied(name, data, o); s != nil || err != nil {
			return s, err
		}
	}
	return launch.Assemble(name, commands, notes, o.Line)
}

// readApplied reads the first manifest with an engine that a script applies; nil if it applies none.
func readApplied(name string, data []byte, o Options) (*launch.System, error) {
	run, err := shell.Run(name, data, shell.Options{Env: o.Env, Read: o.Read})
	if err != nil {
		return nil, asFaults(err)
	}
	var first error
	for _, c := range run.Commands {
		for _, file := range applied(c.Args) {
			text, inside := run.File(file)
			if file == "-" {
				text, inside = c.Stdin, true
			}
			from := name
			switch {
			case inside:
				text = append(bytes.Repeat([]byte("\n"), lineOf(data, text)), text...)
			case o.Read == nil:
				continue
			default:
				from = path.Base(file)
				if text, err = o.Read(file); err != nil {
					at := yamldoc.Place{Origin: name, Line: max(c.Line, 1), Column: 1}
					return nil, fault(at, "", "", "%s cannot be read (want it beside the script)", file)
				}
			}
			if k := kindOf(strings.TrimPrefix(path.Base(file), "-"), text, true); k != nil {
				s, err := k.read(from, text, o)
				if err == nil {
					return s, nil
				}
				if first == nil {
					first = err
				}
			}
		}
	}
	return nil, first
}

// applied are the files that a command gives to a program that starts what they say.
func applied(args []shell.Word) (files []string) {
	if f := disaggregatedConfig(args); f != "" {
		return []string{f}
	}
	if len(args) == 0 || !slices.Contains([]string{"kubectl", "oc", "docker", "docker-compose", "podman",
		"podman-compose",
		"helm", "helmfile"}, path.Base(args[0].Text)) {
		return nil
	}
	for i, w := range args {
		name, value, joined := strings.Cut(w.Text, "=")
		if name != "-f" && name != "--filename" && name != "--file" && name != "--values" {
			continue
		}
		if !joined && i+1 < len(args) {
			value = args[i+1].Text
		}
		if value != "" {
			files = append(files, value)
		}
	}
	return files
}

// lineOf is the number of lines of a script before the text that it writes; 0 if its first line is not found.
func lineOf(script, text []byte) int {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if before, _, ok := bytes.Cut(script, line); ok {
			return bytes.Count(before, []byte("\n"))
		}
		return 0
	}
	return 0
}
