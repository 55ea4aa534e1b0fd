package launch

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/launch/flags"
	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
)

// program is a command that launches an engine, or a router.
type program struct {
	words  []string // that the command line has in this order; python stands for every interpreter of Python
	engine string
	stack  string
	router string // the kind of router, if it is one
	table  string // of its flags
	model  bool   // the first argument may be the model
}

// programs are the commands that are known. The first that fits is taken.
var programs = []program{
	{words: []string{"vllm", "serve"}, engine: "vllm", table: "vllm", model: true},
	{words: []string{"python", "-m", "vllm.entrypoints.openai.api_server"}, engine: "vllm", table: "vllm"},
	{words: []string{"python", "-m", "vllm.entrypoints.api_server"}, engine: "vllm", table: "vllm"},
	{words: []string{"python", "-m", "vllm.entrypoints.cli.main", "serve"}, engine: "vllm", table: "vllm", model: true},
	{words: []string{"python", "-m", "sglang.launch_server"}, engine: "sglang", table: "sglang"},
	{words: []string{"sglang", "serve"}, engine: "sglang", table: "sglang", model: true},
	{words: []string{"python", "-m", "sglang_router.launch_server"}, engine: "sglang", table: "sglang",
		router: "sglang-router"},
	{words: []string{"python", "-m", "sglang_router.launch_router"}, router: "sglang-router", table: "sglang-router"},
	{words: []string{"sglang-router"}, router: "sglang-router", table: "sglang-router"},
	{words: []string{"smg"}, router: "sglang-router", table: "sglang-router"},
	{words: []string{"trtllm-serve", "disaggregated"}, router: "trtllm-disaggregated", table: "trtllm-disaggregated"},
	{words: []string{"trtllm-serve", "disaggregated_mpi_worker"}, router: "trtllm-disaggregated",
		table: "trtllm-disaggregated"},
	{words: []string{"trtllm-serve", "serve"}, engine: "trtllm", table: "trtllm", model: true},
	{words: []string{"trtllm-serve"}, engine: "trtllm", table: "trtllm", model: true},
	{words: []string{"python", "-m", "dynamo.vllm"}, engine: "vllm", stack: "dynamo", table: "dynamo-vllm"},
	{words: []string{"python", "-m", "dynamo.sglang"}, engine: "sglang", stack: "dynamo", table: "dynamo-sglang"},
	{words: []string{"python", "-m", "dynamo.trtllm"}, engine: "trtllm", stack: "dynamo", table: "dynamo-trtllm"},
	{words: []string{"python", "-m", "dynamo.frontend"}, router: "dynamo-frontend", table: "dynamo-frontend"},
	{words: []string{"python", "-m", "vllm_router.app"}, router: "vllm-router", table: "vllm-router"},
	{words: []string{"vllm-router"}, router: "vllm-router", table: "vllm-router"},
}

var python = pattern.New(`^python(3(\.\d+)?)?$`)

// find returns the program that a command line runs and the place of the first word after it. What stands before it,
// such as mpirun -n 1, is not looked at.
func find(args []shell.Word) (p *program, rest int) {
	for i := range args {
		for k := range programs {
			if n := programs[k].matches(args[i:]); n > 0 {
				return &programs[k], i + n
			}
		}
	}
	return nil, 0
}

// matches returns how many words the program takes of the beginning of a command line; 0 if it is another one.
func (p *program) matches(args []shell.Word) int {
	if len(args) < len(p.words) {
		return 0
	}
	for i, w := range p.words {
		text := path.Base(args[i].Text)
		if w == "python" {
			if !python.Get().MatchString(text) {
				return 0
			}
			continue
		}
		if i > 0 {
			text = args[i].Text
		}
		if text != w && strings.TrimSuffix(text, ".unified_main") != w {
			return 0
		}
	}
	return len(p.words)
}

// Command is a command line that was understood: one that launches an engine or a router.
type Command struct {
	// Line is the engine, nil for a command that is only a router.
	Line *Line
	// Router is the router, nil for none.
	Router *Router
}

// ReadCommand understands a command of a script or a manifest. ok is false if it launches nothing that is known. A
// script inside the command, as of bash -c, is run.
func ReadCommand(file string, c shell.Command, o ScriptOptions) (list []Command, notes []Note, err error) {
	if inside, ok := inContainer(&c); ok {
		return ReadCommand(file, inside, o)
	}
	c.Args = withEntrypoint(c.Args, c.Image)
	if i := scriptAt(c.Args); i >= 0 {
		return readInside(file, c, i, o)
	}
	p, rest := find(c.Args)
	if p == nil {
		return nil, nil, nil
	}
	table, err := flags.Of(p.table)
	if err != nil {
		return nil, nil, err
	}
	at := func(line int) yamldoc.Place {
		return yamldoc.Place{Origin: file, Line: o.FirstLine + line - 1, Column: 1}
	}
	find, isRouters := table.Find, func(f Flag) bool { return p.engine == "" }
	if p.router != "" && p.engine != "" {
		if find, isRouters, err = withRouter(table, p.router); err != nil {
			return nil, nil, err
		}
	}
	fs, free := splitFlags(c.Args[rest:], find, at)
	var out Command
	if p.router != "" {
		own := slices.DeleteFunc(slices.Clone(fs), func(f Flag) bool { return !isRouters(f) })
		fs = slices.DeleteFunc(fs, isRouters)
		if out.Router, err = newRouter(p.router, own, c, at(c.Line), o); err != nil {
			return nil, nil, err
		}
	}
	if p.engine != "" {
		l := &Line{Engine: p.engine, Stack: p.stack, Table: p.table, Flags: fs, At: at(c.Line), Image: c.Image}
		for _, v := range c.Env {
			l.Env = append(l.Env, Flag{Name: v.Name, Value: v.Value, Env: true, At: at(c.Line)})
		}
		if p.model && len(free) > 0 {
			l.Model, l.ModelAt = free[0].Text, at(free[0].Line)
		}
		l.Release, l.GPUs = releaseOf(l.Image), c.GPUs
		if err := withFiles(l, table, o); err != nil {
			return nil, nil, err
		}
		out.Line = l
	}
	return []Command{out}, nil, nil
}

// readInside understands the script that is argument i of a command, such as bash -c SCRIPT.
func readInside(file string, c shell.Command, i int, o ScriptOptions) (list []Command, notes []Note, err error) {
	env := map[string]string{}
	for _, v := range c.Env {
		env[v.Name] = v.Value
	}
	maps.Copy(env, o.Env)
	o.Env, o.FirstLine = env, o.FirstLine+c.Args[i].Line-1
	list, notes, err = ReadScript(file, []byte(c.Args[i].Text), o)
	for _, cmd := range list {
		if l := cmd.Line; l != nil && l.Image == "" {
			l.Image, l.Release, l.GPUs = c.Image, releaseOf(c.Image), c.GPUs
		}
	}
	return list, notes, err
}

// newRouter returns the router that a command launches, with its own flags and those in variables.
func newRouter(kind string, own []Flag, c shell.Command, at yamldoc.Place, o ScriptOptions) (*Router, error) {
	r := &Router{Kind: kind, Flags: own, At: at}
	if kind == "trtllm-disaggregated" {
		if err := r.withServers(o); err != nil {
			return nil, err
		}
	}
	for _, v := range c.Env {
		if strings.HasPrefix(v.Name, "DYN_") { // Dynamo's front end reads each option from a variable too
			r.Flags = append(r.Flags, Flag{Name: v.Name, Value: v.Value, Env: true, At: at})
		}
	}
	return r, nil
}

// withRouter is for commands that launch an engine and its router, whose flags have the prefix router-. It returns how
// a flag is found, and which flags are the router's.
func withRouter(table *flags.Table, router string) (find finder, isRouters func(Flag) bool, err error) {
	own, err := flags.Of(router)
	if err != nil {
		return nil, nil, err
	}
	prefixed := func(name string) bool {
		return strings.HasPrefix(plainName(strings.TrimLeft(name, "-")), "router-")
	}
	find = func(name string) (*flags.Flag, bool) {
		if prefixed(name) {
			return own.Find(name)
		}
		return table.Find(name)
	}
	return find, func(f Flag) bool { return prefixed(f.Name) }, nil
}

// finder returns a flag of the command line by its name, as [flags.Table.Find].
type finder func(name string) (f *flags.Flag, negated bool)

// scriptAt returns the place of the script in bash -c SCRIPT; -1 if there is none.
func scriptAt(args []shell.Word) int {
	for i, w := range args {
		if name := path.Base(w.Text); name != "bash" && name != "sh" {
			continue
		}
		for k := i + 1; k+1 < len(args); k++ {
			if f := args[k].Text; strings.HasPrefix(f, "-") && strings.HasSuffix(f, "c") &&
				!strings.HasPrefix(f, "--") {
				return k + 1
			}
			if !strings.HasPrefix(args[k].Text, "-") {
				break
			}
		}
	}
	return -1
}

// splitFlags divides arguments into flags and other words.
func splitFlags(args []shell.Word, find finder, at func(int) yamldoc.Place) (list []Flag, free []shell.Word) {
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !strings.HasPrefix(w.Text, "-") || isNumber(w.Text) || w.Text == "-" {
			free = append(free, w)
			continue
		}
		name, value, joined := strings.Cut(w.Text, "=")
		f := Flag{Name: strings.TrimLeft(name, "-"), Value: value, At: at(w.Line), Dash: !strings.HasPrefix(name, "--")}
		known, _ := find(name)
		if known == nil && !joined && !strings.HasPrefix(name, "--") && strings.HasPrefix(name, "-O") {
			f.Name, f.Value, joined = "O", strings.TrimPrefix(name, "-O"), true // -O3
			f.Value = strings.TrimPrefix(f.Value, ".")
		}
		isSwitch := known != nil && known.Type == "bool" && !strings.Contains(name, ".")
		switch {
		case joined:
		case isSwitch:
			f.Bare = true
			if i+1 < len(args) && isTruth(args[i+1].Text) { // some parsers take --flag true
				i++
				f.Value, f.Bare = args[i].Text, false
			}
		case i+1 < len(args) && (!strings.HasPrefix(args[i+1].Text, "-") || isNumber(args[i+1].Text)):
			i++
			f.Value = args[i].Text
			for known != nil && known.Type == "list" && i+1 < len(args) && !strings.HasPrefix(args[i+1].Text, "-") {
				i++
				f.Value += "," + args[i].Text
			}
		default:
			f.Bare = true
		}
		list = append(list, f)
	}
	return list, free
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

func isTruth(s string) bool {
	return slices.Contains([]string{"true", "false"}, strings.ToLower(s))
}
