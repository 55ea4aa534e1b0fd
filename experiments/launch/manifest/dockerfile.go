package manifest

import (
	"encoding/json"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
)

// Shapes: the Dockerfile reference, moby/buildkit frontend/dockerfile/docs/reference.md.

// instruction is one of a Dockerfile, with the lines that a backslash continues.
type instruction struct {
	name, rest string
	line       int
}

// stage is the state of one build stage.
type stage struct {
	image               string
	env                 []shell.Variable
	entrypoint, command []shell.Word
}

// readDockerfile reads the last stage of a Dockerfile: its ENTRYPOINT and CMD.
func readDockerfile(name string, data []byte, o Options) (*launch.System, error) {
	r := newReader(name, data, o)
	var s stage
	stages := map[string]stage{}
	var args []shell.Variable // before the first FROM
	this := ""
	for _, in := range instructions(r.lines) {
		switch in.name {
		case "FROM":
			stages[this] = s
			s, this = from(r, in, args, stages)
		case "ARG", "ENV":
			list := assignments(r, in, s.env)
			if this == "" && s.image == "" {
				args = append(args, list...)
			}
			s.env = append(s.env, list...)
		case "ENTRYPOINT":
			s.entrypoint, s.command = form(r, in), nil
		case "CMD":
			s.command = form(r, in)
		}
	}
	top := yamldoc.Place{Origin: name, Line: 1, Column: 1}
	if s.image == "" {
		return nil, fault(top, "", "", "this Dockerfile has no FROM (want FROM IMAGE)")
	}
	c := &container{image: s.image, command: s.entrypoint, args: s.command, env: s.env, at: top}
	if len(s.entrypoint) == 3 && s.entrypoint[1].Text == "-c" && len(s.command) > 0 &&
		s.entrypoint[0].Text == "/bin/sh" {
		c.args = nil // CMD counts only beside an ENTRYPOINT in brackets
	}
	commands, err := r.launch(c)
	if err != nil {
		return nil, err
	}
	if len(commands) == 0 {
		r.images = append(r.images, s.image)
	}
	for _, cmd := range commands {
		if cmd.Router != nil {
			r.system.Router = cmd.Router
		}
		if cmd.Line != nil {
			r.add(launch.Group{Replicas: 1, Line: *cmd.Line, At: cmd.Line.At}, "Dockerfile", "")
		}
	}
	return r.finish()
}

// instructions divides a Dockerfile.
func instructions(lines []string) (list []instruction) {
	for i := 0; i < len(lines); i++ {
		text := strings.TrimSpace(lines[i])
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		first := i
		for strings.HasSuffix(text, `\`) && i+1 < len(lines) {
			i++
			next := strings.TrimSpace(lines[i])
			if strings.HasPrefix(next, "#") {
				next = `\` // comments stand between the lines
			}
			text = strings.TrimSuffix(text, `\`) + "\n" + next
		}
		name, rest, _ := strings.Cut(text, " ")
		if marker := heredoc.Get().FindStringSubmatch(text); marker != nil {
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != marker[1]; i++ {
				continue
			}
		}
		list = append(list, instruction{strings.ToUpper(strings.TrimSpace(name)), strings.TrimSpace(rest), first + 1})
	}
	return list
}

var heredoc = pattern.New(`<<-?["']?([A-Za-z_]+)["']?`)

// from begins a stage: with an image, or with the state of an earlier stage.
func from(r *reader, in instruction, args []shell.Variable, stages map[string]stage) (stage, string) {
	var words []string
	for _, w := range strings.Fields(in.rest) {
		if !strings.HasPrefix(w, "--") {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return stage{}, ""
	}
	image := r.substitute(words[0], args)
	this := "-"
	if len(words) == 3 && strings.EqualFold(words[1], "as") {
		this = words[2]
	}
	if before, ok := stages[image]; ok && image != "" {
		return before, this
	}
	return stage{image: image}, this
}

// assignments are the variables of ARG and ENV. An ARG without a value is none, unless the options say it.
func assignments(r *reader, in instruction, env []shell.Variable) (list []shell.Variable) {
	words := splitWords(in.rest, in.line)
	if in.name == "ENV" && len(words) > 1 && !strings.Contains(words[0].Text, "=") { // ENV NAME VALUE
		name, value, _ := strings.Cut(in.rest, " ")
		return []shell.Variable{{Name: name, Value: r.substitute(strings.TrimSpace(value), env)}}
	}
	for _, w := range words {
		name, value, ok := strings.Cut(w.Text, "=")
		if given, set := r.o.Env[name]; set {
			value, ok = given, true
		}
		if ok {
			list = append(list, shell.Variable{Name: name, Value: r.substitute(value, append(env, list...))})
		}
	}
	return list
}

func (r *reader) substitute(s string, env []shell.Variable) string {
	inner := *r
	inner.o.Env = map[string]string{}
	for _, v := range env {
		inner.o.Env[v.Name] = v.Value
	}
	for name, value := range r.o.Env {
		inner.o.Env[name] = value
	}
	return inner.interpolate(s)
}

// form reads ENTRYPOINT or CMD: words in brackets, or a line for the shell.
func form(r *reader, in instruction) (words []shell.Word) {
	var list []string
	plain := strings.ReplaceAll(in.rest, "\n", " ")
	if strings.HasPrefix(plain, "[") && json.Unmarshal([]byte(plain), &list) == nil {
		line := in.line
		for _, w := range list {
			for k := line; k <= len(r.lines) && k < in.line+200; k++ {
				if strings.Contains(r.lines[k-1], w) {
					line = k
					break
				}
			}
			words = append(words, shell.Word{Text: w, Line: line})
		}
		return words
	}
	// Newlines of continued lines stay, with their backslashes, so that flags have their lines.
	script := strings.ReplaceAll(in.rest, "\n", " \\\n")
	return []shell.Word{{Text: "/bin/sh", Line: in.line}, {Text: "-c", Line: in.line}, {Text: script, Line: in.line}}
}
