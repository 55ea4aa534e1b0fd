// Package shell finds the commands that a shell script would start. The script is interpreted, so that variables,
// conditions, functions and here-documents count, but no program is started and no file is written: files that the
// script writes are kept in memory.
package shell

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Command is a program that a script would start.
type Command struct {
	// Args are the program and its arguments.
	Args []Word
	// Env are the variables that the script exports to the program, by name.
	Env []Variable
	// Line is where the command begins.
	Line int
	// Image is the container image in which it runs; empty is none, or not known.
	Image string
	// Stdin is the manifest that a program such as kubectl reads from its standard input; nil for other programs.
	Stdin []byte
	// GPUs is the number of GPUs that the container gets; 0 is all, or not known.
	GPUs int
}

// Word is an argument of a command.
type Word struct {
	Text string
	Line int
}

// Variable is an environment variable.
type Variable struct{ Name, Value string }

// Result has the effects of a script.
type Result struct {
	// Commands are the programs in the order of their start.
	Commands []Command
	// Files are the files that the script writes, by cleaned path.
	Files map[string][]byte
	// Unset are variables that the script uses and does not set. Each stands as ${NAME} in the arguments.
	Unset []string
}

// Options say what a script finds around it.
type Options struct {
	// Env are environment variables.
	Env map[string]string
	// Read reads a file beside the script; nil reads none.
	Read func(name string) ([]byte, error)
	// FirstLine is the line of the file at which the script begins, for errors; 0 is 1.
	FirstLine int
}

const (
	maxCommands = 20_000          // a script that starts more is cut off
	maxTime     = 3 * time.Second // and one that runs for longer
	maxOutput   = 1 << 20         // bytes of a file or of an output
)

// Run interprets a script. The error has the place of a syntax error. A script that ends with a failure, or that does
// not end, gives the commands until then.
func Run(name string, data []byte, o Options) (*Result, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(data), name)
	if err != nil {
		var p syntax.ParseError
		if errors.As(err, &p) {
			line := int(p.Pos.Line()) + max(o.FirstLine, 1) - 1
			return nil, fmt.Errorf("%s:%d:%d: %s", name, line, p.Pos.Col(), p.Text)
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r := &runner{options: o, result: &Result{Files: map[string][]byte{}}, words: map[position][]*syntax.Word{}}
	r.look(file)
	env := maps.Clone(o.Env)
	if env == nil {
		env = map[string]string{}
	}
	for _, name := range r.result.Unset {
		env[name] = "${" + name + "}"
	}
	r.given = env
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	sh, err := interp.New(interp.Env(environment(env)), interp.StdIO(nil, &limited{}, &limited{}),
		interp.CallHandler(r.call), interp.OpenHandler(r.open), interp.StatHandler(r.stat),
		interp.ReadDirHandler2(func(context.Context, string) ([]fs.DirEntry, error) { return nil, nil }),
		interp.AccessHandler(func(context.Context, string, interp.AccessMode) error { return nil }),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return r.exec }))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	_ = sh.Run(ctx, file) // a failing script has started its commands
	return r.result, nil
}

// runner records what a script does.
type runner struct {
	options Options
	result  *Result
	given   map[string]string // the environment of the script
	words   map[position][]*syntax.Word
	started int
	temps   int
}

type position struct{ line, column uint }

// look notes the words of commands, makes commands in the background run in order, and collects variables that are
// used and never set.
func (r *runner) look(file *syntax.File) {
	set, used, guarded := map[string]bool{}, map[string]bool{}, map[*syntax.ParamExp]bool{}
	var order []string
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			n.Background = false
		case *syntax.CallExpr:
			r.words[position{n.Pos().Line(), n.Pos().Col()}] = n.Args
			if len(n.Args) > 1 && n.Args[0].Lit() == "read" {
				for _, a := range n.Args[1:] {
					set[a.Lit()] = true
				}
			}
		case *syntax.Assign:
			if n.Name != nil {
				set[n.Name.Value] = true
			}
		case *syntax.WordIter:
			set[n.Name.Value] = true
		case *syntax.ParamExp:
			name := ""
			if n.Param != nil {
				name = n.Param.Value
			}
			if e := n.Exp; e != nil && e.Word != nil &&
				(e.Op == syntax.AlternateUnset || e.Op == syntax.AlternateUnsetOrNull) {
				syntax.Walk(e.Word, func(inner syntax.Node) bool { // of ${NAME:+--flag $NAME}
					if p, ok := inner.(*syntax.ParamExp); ok && p.Param != nil && p.Param.Value == name {
						guarded[p] = true
					}
					return true
				})
			}
			if optional := n.Exp != nil || n.Length || n.IsSet || guarded[n]; !optional && isName(name) && !used[name] {
				used[name] = true
				order = append(order, name)
			}
		}
		return true
	})
	for _, name := range order {
		if _, given := r.options.Env[name]; !set[name] && !given && !known[name] {
			r.result.Unset = append(r.result.Unset, name)
		}
	}
}

// known are variables that every shell has.
var known = map[string]bool{"PWD": true, "HOME": true, "UID": true, "EUID": true, "GID": true, "PPID": true,
	"RANDOM": true, "LINENO": true, "IFS": true, "OPTIND": true, "OPTARG": true, "BASH_SOURCE": true, "PATH": true,
	"DIRSTACK": true, "SECONDS": true, "REPLY": true, "HOSTNAME": true, "USER": true, "PIPESTATUS": true}

// isName reports whether a parameter is a variable: not a number or a special parameter.
func isName(s string) bool {
	return s != "" && (s[0] == '_' || s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
}

func environment(env map[string]string) expand.Environ {
	list := []string{"HOME=/root", "PATH=/usr/bin", "USER=root"}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return expand.ListEnviron(list...)
}

// call counts commands and stops a script that has too many.
func (r *runner) call(_ context.Context, args []string) ([]string, error) {
	if r.started++; r.started > maxCommands {
		return nil, errors.New("too many commands")
	}
	if len(args) > 0 && (args[0] == "trap" || args[0] == "wait" || args[0] == "exec" && len(args) > 1 &&
		strings.HasPrefix(args[1], "-")) {
		return []string{"true"}, nil
	}
	if len(args) > 1 && args[0] == "exec" {
		return args[1:], nil // what follows in the script is not reached, but harmless
	}
	return args, nil
}

// readers are programs that start what a manifest says, and may read it from their standard input.
var readers = []string{"kubectl", "oc", "helm", "docker", "docker-compose", "podman"}

// exec records a program instead of starting it. A few programs that scripts use to compute their arguments work.
func (r *runner) exec(ctx context.Context, args []string) error {
	h := interp.HandlerCtx(ctx)
	if tool, ok := tools[path.Base(args[0])]; ok {
		return tool(r, h, args[1:])
	}
	c := Command{Line: int(h.Pos.Line())}
	source := r.words[position{h.Pos.Line(), h.Pos.Col()}]
	for i, text := range args {
		c.Args = append(c.Args, Word{text, r.line(source, i, len(args), text, c.Line)})
	}
	for name, v := range h.Env.Each {
		if v.Exported && v.Kind == expand.String && r.given[name] != v.Str && !known[name] {
			c.Env = append(c.Env, Variable{name, v.Str})
		}
	}
	for name, value := range r.options.Env {
		if h.Env.Get(name).Str == value {
			c.Env = append(c.Env, Variable{name, value})
		}
	}
	if slices.Contains(readers, path.Base(args[0])) && slices.Contains(args, "-") && h.Stdin != nil {
		c.Stdin, _ = io.ReadAll(io.LimitReader(h.Stdin, maxOutput))
	}
	slices.SortFunc(c.Env, func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
	r.result.Commands = append(r.result.Commands, c)
	return nil
}

// line finds the line of an argument: that of its own word if each word gave one argument, or else of a word that
// begins like it.
func (r *runner) line(source []*syntax.Word, i, n int, text string, fallback int) int {
	if len(source) == n {
		return int(source[i].Pos().Line())
	}
	for _, w := range source {
		if len(w.Parts) == 0 {
			continue
		}
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && lit.Value != "" && strings.HasPrefix(text, lit.Value) {
			return int(w.Pos().Line())
		}
	}
	return fallback
}

// limited is a writer that keeps no more than maxOutput bytes.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxOutput - l.Len(); room < len(p) {
		l.Buffer.Write(p[:max(0, room)])
		return len(p), nil
	}
	return l.Buffer.Write(p)
}
