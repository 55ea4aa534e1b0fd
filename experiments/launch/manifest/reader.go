package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
)

// reader reads one file into a system.
type reader struct {
	name   string
	lines  []string // of the file
	o      Options
	system *launch.System
	// configs are the ConfigMaps of the file by name, and runtimes the serving runtimes of KServe.
	configs, runtimes map[string]*yamldoc.Node
	// owners are kind and name of the object of each group, by which autoscalers find it.
	owners []owner
	// images of containers that launch no known engine.
	images []string
	// others are the kinds of objects that are not read.
	others []string
}

type owner struct{ kind, name string }

func newReader(name string, data []byte, o Options) *reader {
	return &reader{name: name, lines: strings.Split(string(data), "\n"), o: o, system: &launch.System{},
		configs: map[string]*yamldoc.Node{}, runtimes: map[string]*yamldoc.Node{}}
}

// fault is a wrong value at a place of the file.
func fault(at yamldoc.Place, key, hint, format string, args ...any) error {
	return yamldoc.Faults{{Where: at.String(), Key: key, Problem: fmt.Sprintf(format, args...), Hint: hint}}
}

func (r *reader) note(at yamldoc.Place, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if at.Line > 0 {
		text = fmt.Sprintf("%s:%d: %s", at.Origin, at.Line, text)
	}
	r.system.Notes = append(r.system.Notes, launch.Note{At: at, Text: text})
}

type container struct {
	name, image   string
	command, args []shell.Word
	env           []shell.Variable // in their order; a value of "${NAME}" is not known
	gpus          int
	files         map[string]mounted // that are mounted, by path
	fixed         []shell.Word       // words that keys of the file stand for, where no flag is written
	at            yamldoc.Place
}

// mounted is a file of a ConfigMap.
type mounted struct {
	text string
	line int // of the manifest at which it begins
}

// launch reads the command of a container: the engines and routers that it starts.
func (r *reader) launch(c *container) ([]launch.Command, error) {
	known := map[string]string{}
	cmd := shell.Command{Image: r.expand(c.image, known), GPUs: c.gpus, Line: max(c.at.Line, 1)}
	for _, v := range c.env {
		value := r.expand(v.Value, known)
		if given, ok := r.o.Env[v.Name]; ok {
			value = given
		}
		known[v.Name] = value
		cmd.Env = append(cmd.Env, shell.Variable{Name: v.Name, Value: value})
	}
	for _, list := range [][]shell.Word{c.command, c.args} {
		for _, w := range list {
			w.Text = r.expand(w.Text, known)
			cmd.Args = append(cmd.Args, w)
		}
	}
	if len(cmd.Args) > 0 {
		cmd.Line = cmd.Args[0].Line
	}
	cmd.Args = huggingFaceServer(cmd.Image, cmd.Args)
	o := r.o.ScriptOptions
	o.FirstLine, o.Read = 1, c.read(r.o.Read)
	list, notes, err := launch.ReadCommand(r.name, cmd, o)
	if err != nil {
		return nil, r.inManifest(c, asFaults(err))
	}
	r.system.Notes = append(r.system.Notes, notes...)
	for i := range list {
		r.place(c, &list[i])
	}
	return list, nil
}

// read returns the reader of files that a container sees.
func (c *container) read(beside func(string) ([]byte, error)) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if f, ok := c.files[name]; ok {
			// So many lines above it that its lines have the numbers of the manifest.
			return []byte(strings.Repeat("\n", f.line-1) + f.text), nil
		}
		if beside == nil {
			return nil, fmt.Errorf("%s is not in the manifest", name)
		}
		return beside(name)
	}
}

// inManifest gives faults of a mounted file the name of the manifest.
func (r *reader) inManifest(c *container, err error) error {
	faults, ok := err.(yamldoc.Faults)
	if !ok {
		return err
	}
	for _, f := range faults {
		for name := range c.files {
			if rest, ok := strings.CutPrefix(f.Where, name+":"); ok {
				f.Where = r.name + ":" + rest
			}
		}
	}
	return faults
}

// place sets the places of flags to where they stand in the file: in texts of several lines, in lists, and in mounted
// files.
func (r *reader) place(c *container, cmd *launch.Command) {
	var flags []launch.Flag
	if cmd.Line != nil {
		flags = cmd.Line.Flags
	} else if cmd.Router != nil {
		flags = cmd.Router.Flags
	}
	for i := range flags {
		f := &flags[i]
		if _, ok := c.files[f.At.Origin]; ok {
			f.At.Origin = r.name
		}
		fixed := slices.ContainsFunc(c.fixed, func(w shell.Word) bool {
			return w.Line == f.At.Line && strings.TrimLeft(w.Text, "-") == f.Name
		})
		if f.At.Origin != r.name || f.File || f.Env || fixed {
			continue
		}
		const most = 100
		for line := f.At.Line; line >= 1 && line <= len(r.lines) && line < f.At.Line+most; line++ {
			if k := strings.Index(r.lines[line-1], "-"+f.Name); k >= 0 {
				f.At.Line, f.At.Column = line, len(strings.TrimRight(r.lines[line-1][:k], "-"))+1
				break
			}
		}
	}
}

var variable = pattern.New(`\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand puts in the values of $(NAME), as Kubernetes does, and of ${NAME} that the options name, as envsubst does.
// A name in capitals without a value stands as ${NAME} afterwards.
func (r *reader) expand(text string, known map[string]string) string {
	return variable.Get().ReplaceAllStringFunc(text, func(s string) string {
		m := variable.Get().FindStringSubmatch(s)
		if name := m[1]; name != "" {
			if value, ok := r.o.Env[name]; ok {
				return value
			}
			if value, ok := known[name]; ok {
				return value
			}
			if strings.ToUpper(name) == name {
				return "${" + name + "}"
			}
			return s
		}
		if value, ok := r.o.Env[m[2]]; ok && m[2] != "" {
			return value
		}
		return s
	})
}

// words are the words of a list, each with its line.
func (r *reader) words(n *yamldoc.Node) []shell.Word {
	var list []shell.Word
	if n == nil {
		return nil
	}
	for _, item := range n.Items {
		list = append(list, shell.Word{Text: item.Text, Line: r.textLine(item)})
	}
	return list
}

// textLine is the line at which the text of a value begins: for a block, the one after its mark.
func (r *reader) textLine(n *yamldoc.Node) int {
	line := max(n.At.Line, 1)
	if line <= len(r.lines) && n.At.Column >= 1 && n.At.Column <= len(r.lines[line-1]) {
		if c := r.lines[line-1][n.At.Column-1]; c == '|' || c == '>' {
			return line + 1
		}
	}
	return line
}

// text is the scalar at the end of a path; "" if there is none.
func text(n *yamldoc.Node, path ...string) string {
	v := n.Lookup(path...)
	if v == nil || v.Kind == yamldoc.List || v.Kind == yamldoc.Map {
		return ""
	}
	return v.Text
}

func items(n *yamldoc.Node, path ...string) []*yamldoc.Node {
	if v := n.Lookup(path...); v != nil && v.Kind == yamldoc.List {
		return v.Items
	}
	return nil
}

// fields are the keys of a map at the end of a path.
func fields(n *yamldoc.Node, path ...string) []yamldoc.Field {
	if v := n.Lookup(path...); v != nil && v.Kind == yamldoc.Map {
		return v.Fields
	}
	return nil
}

func truth(n *yamldoc.Node, path ...string) bool {
	v := n.Lookup(path...)
	return v != nil && (v.Kind == yamldoc.Bool && v.Truth || v.Kind == yamldoc.Text && v.Text == "true")
}

// whole is a whole number at the end of a path, also of one in quotes; fallback if there is none. A text that holds a
// template or a variable is a fault.
func (r *reader) whole(n *yamldoc.Node, fallback int, path ...string) (int, error) {
	v := n.Lookup(path...)
	if v == nil {
		return fallback, nil
	}
	x, err := strconv.Atoi(strings.TrimSpace(r.expand(v.Text, nil)))
	const most = 1 << 20
	if err != nil || x < 0 || x > most || v.Kind == yamldoc.List || v.Kind == yamldoc.Map {
		if strings.Contains(v.Text, "{{") {
			return 0, templated(v.At, v.Text)
		}
		key := path[len(path)-1]
		hint := ""
		if m := variable.Get().FindStringSubmatch(v.Text); m != nil && m[2] != "" {
			hint = "--env " + m[2] + "=VALUE sets it"
		}
		return 0, fault(v.At, key, hint, "%s (want a whole number)", v.Describe())
	}
	return x, nil
}

func templated(at yamldoc.Place, text string) error {
	text = yamldoc.Short(strings.TrimSpace(text))
	return fault(at, "", "helm template RELEASE CHART -f values.yaml > rendered.yaml, then import rendered.yaml",
		"this is a template that was not rendered: %s (want the output of helm template)", text)
}

// lookup walks a path; an empty map if it ends in nothing.
func lookup(n *yamldoc.Node, path ...string) *yamldoc.Node {
	if v := n.Lookup(path...); v != nil {
		return v
	}
	return &yamldoc.Node{Kind: yamldoc.Map, At: n.At}
}
