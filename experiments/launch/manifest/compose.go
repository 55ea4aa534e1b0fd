package manifest

import (
	"cmp"
	"slices"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
)

// Shapes: the Compose specification, compose-spec/compose-spec (05-services.md, deploy.md, 12-interpolation.md).

func isCompose(_ string, data []byte) bool {
	return hasKey(data, "services") && !hasKey(data, "apiVersion")
}

// readCompose reads the services of a compose file.
func readCompose(name string, data []byte, o Options) (*launch.System, error) {
	r := newReader(name, data, o)
	docs, err := r.documents(data)
	if err != nil {
		return nil, err
	}
	r.o.Env = withDefaults(r.o, ".env")
	for _, d := range docs {
		r.interpolateAll(d, map[*yamldoc.Node]bool{})
		r.system.Name = text(d, "name")
		for _, f := range fields(d, "services") {
			if err := service(r, f.Name, f.Value, fields(d, "configs")); err != nil {
				return nil, err
			}
		}
	}
	return r.finish()
}

// withDefaults adds the variables of a file beside the compose file to those of the options, which win.
func withDefaults(o Options, name string) map[string]string {
	env := map[string]string{}
	for _, v := range variables(o, name) {
		env[v.Name] = v.Value
	}
	for name, value := range o.Env {
		env[name] = value
	}
	return env
}

// variables reads a file of lines NAME=VALUE; none if there is no such file.
func variables(o Options, name string) (list []shell.Variable) {
	if o.Read == nil {
		return nil
	}
	data, err := o.Read(name)
	if err != nil {
		return nil
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			value = strings.Trim(strings.TrimSpace(value), `"'`)
			list = append(list, shell.Variable{Name: strings.TrimSpace(name), Value: value})
		}
	}
	return list
}

// service reads one service. configs are the configs of the file, which a service mounts as files.
func service(r *reader, name string, n *yamldoc.Node, configs []yamldoc.Field) error {
	if n.Lookup("extends") != nil {
		r.note(n.Lookup("extends").At, "extends is not read (docker compose config writes the whole file)")
	}
	c := &container{name: name, image: text(n, "image"), at: n.At, files: map[string]mounted{}}
	for _, m := range items(n, "configs") {
		source := cmp.Or(text(m, "source"), m.Text)
		for _, f := range configs {
			if content := f.Value.Lookup("content"); f.Name == source && content != nil {
				c.files[cmp.Or(text(m, "target"), "/"+source)] = mounted{content.Text, r.textLine(content)}
			}
		}
	}
	c.env = composeEnvironment(r, n)
	for _, part := range []struct {
		key string
		to  *[]shell.Word
	}{{"entrypoint", &c.command}, {"command", &c.args}} {
		v := n.Lookup(part.key)
		switch {
		case v == nil:
		case v.Kind == yamldoc.List:
			*part.to = r.words(v)
		default:
			*part.to = splitWords(v.Text, r.textLine(v))
		}
	}
	var err error
	if c.gpus, err = composeGPUs(r, n); err != nil {
		return err
	}
	for _, v := range c.env { // of the runtime nvidia
		ids := strings.Split(v.Value, ",")
		named := !slices.Contains([]string{"", "all", "none", "void"}, v.Value) && !strings.Contains(v.Value, "$")
		if v.Name == "NVIDIA_VISIBLE_DEVICES" && named && c.gpus == 0 {
			c.gpus = len(ids)
		}
	}
	commands, err := r.launch(c)
	if err != nil {
		return err
	}
	if len(commands) == 0 && c.image != "" && (c.gpus > 0 || len(c.args)+len(c.command) > 0) {
		r.images = append(r.images, c.image)
	}
	for _, cmd := range commands {
		if cmd.Router != nil && r.system.Router == nil {
			r.system.Router = cmd.Router
		}
		if cmd.Line == nil {
			continue
		}
		g := launch.Group{Nodes: 1, GPUsPerNode: c.gpus, Line: *cmd.Line, At: n.At}
		if cmd.Line.Stack != "" {
			r.system.Stack = cmd.Line.Stack
		}
		if g.Replicas, err = r.whole(n, 1, "deploy", "replicas"); err != nil {
			return err
		}
		if v := n.Lookup("scale"); v != nil {
			if g.Replicas, err = r.whole(n, 1, "scale"); err != nil {
				return err
			}
		}
		r.add(g, "service", name)
	}
	return nil
}

// composeEnvironment reads the variables of a service: a map, or a list of NAME=VALUE.
func composeEnvironment(r *reader, n *yamldoc.Node) (list []shell.Variable) {
	files := items(n, "env_file")
	if one := n.Lookup("env_file"); one != nil && one.Kind == yamldoc.Text {
		files = append(files, one)
	}
	for _, f := range files {
		list = append(list, variables(r.o, cmp.Or(f.Text, text(f, "path")))...)
	}
	for _, v := range items(n, "environment") {
		if name, value, ok := strings.Cut(v.Text, "="); ok {
			list = append(list, shell.Variable{Name: name, Value: value})
		}
	}
	for _, f := range fields(n, "environment") {
		list = append(list, shell.Variable{Name: f.Name, Value: f.Value.Text})
	}
	return list
}

// composeGPUs counts the GPUs of a service: the devices that it reserves, or those of gpus. 0 is all, or not known.
func composeGPUs(r *reader, n *yamldoc.Node) (int, error) {
	devices := items(n, "deploy", "resources", "reservations", "devices")
	devices = append(devices, items(n, "gpus")...)
	for _, d := range devices {
		if ids := items(d, "device_ids"); len(ids) > 0 {
			return len(ids), nil
		}
		if count := text(d, "count"); count != "" && count != "all" && count != "-1" {
			return r.whole(d, 0, "count")
		}
	}
	return 0, nil
}

var interpolation = pattern.New(`\$\$|\$\{([A-Za-z_]\w*)(?:(:?[-+?])([^{}]*))?\}|\$([A-Za-z_]\w*)`)

// interpolateAll puts the values of variables into all texts of a file.
func (r *reader) interpolateAll(n *yamldoc.Node, done map[*yamldoc.Node]bool) {
	if done[n] {
		return
	}
	done[n] = true
	if n.Kind == yamldoc.Text {
		n.Text = r.interpolate(n.Text)
	}
	for _, v := range n.Items {
		r.interpolateAll(v, done)
	}
	for _, f := range n.Fields {
		r.interpolateAll(f.Value, done)
	}
}

// interpolate puts in the values of variables as compose does. A variable without a value stands as ${NAME}.
func (r *reader) interpolate(s string) string {
	return interpolation.Get().ReplaceAllStringFunc(s, func(s string) string {
		if s == "$$" {
			return "$"
		}
		m := interpolation.Get().FindStringSubmatch(s)
		name := m[1] + m[4]
		value, set := r.o.Env[name]
		if strings.HasPrefix(m[2], ":") && value == "" {
			set = false
		}
		switch strings.TrimPrefix(m[2], ":") {
		case "-":
			if !set {
				return m[3]
			}
		case "+":
			if set {
				return m[3]
			}
			return ""
		}
		if !set {
			return "${" + name + "}"
		}
		return value
	})
}

// isDockerfile reports whether a file is a Dockerfile, by its name or by its first instruction.
func isDockerfile(name string, data []byte) bool {
	base := strings.ToLower(name)
	if slices.Contains([]string{"dockerfile", "containerfile"}, base) || strings.HasPrefix(base, "dockerfile.") ||
		strings.HasSuffix(base, ".dockerfile") {
		return true
	}
	from := false
	for line := range strings.SplitSeq(string(data), "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch strings.ToUpper(word) {
		case "", "ARG":
		case "FROM":
			from = from || rest != ""
			return word == "FROM" || from && word == "from"
		default:
			if !strings.HasPrefix(word, "#") {
				return false
			}
		}
	}
	return from
}
