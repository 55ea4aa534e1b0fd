package launch

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"clifftop/experiments/launch/flags"
	"clifftop/experiments/scenario/yamldoc"
)

var errNoFile = errors.New("there is no such file")

// configFileRule is the rule of flags that name a configuration file.
const configFileRule = "configuration file"

// withFiles puts the keys of configuration files in the place of the flags that name them. A file that cannot be read
// leaves its flag. Where both have an option, TensorRT-LLM takes the file's (update_llm_args_with_extra_dict), and the
// other engines that of the command line.
func withFiles(l *Line, table *flags.Table, o ScriptOptions) error {
	var list []Flag
	defer func() { l.Flags = stronger(list, table, l.Engine == "trtllm") }()
	for _, f := range l.Flags {
		known, _ := table.Find(f.Name)
		if known == nil || known.Rule != configFileRule || f.Value == "" {
			list = append(list, f)
			continue
		}
		data, err := errNoFileRead(o, f.Value)
		if err != nil {
			list = append(list, f)
			continue
		}
		root, err := yamldoc.Parse(f.Value, data, false)
		if err != nil {
			return err
		}
		list = append(list, keysOf("", root)...)
	}
	return nil
}

// stronger leaves out the options that the other place overrides.
func stronger(list []Flag, table *flags.Table, file bool) []Flag {
	option := func(f Flag) string {
		find := table.Find
		if f.File {
			find = table.FileKey
		}
		switch k, _ := find(f.Name); {
		case k == nil:
			return ""
		case k.Sets != "":
			return k.Sets
		default:
			return k.Name
		}
	}
	strong := map[string]bool{}
	for _, f := range list {
		strong[option(f)] = strong[option(f)] || f.File == file
	}
	return slices.DeleteFunc(list, func(f Flag) bool {
		name := option(f)
		return f.File != file && name != "" && strong[name]
	})
}

func errNoFileRead(o ScriptOptions, name string) ([]byte, error) {
	if o.Read == nil {
		return nil, errNoFile
	}
	data, err := o.Read(name)
	if err != nil && path.IsAbs(name) { // a path of the machine or the container: the file may lie beside the script
		return o.Read(path.Base(name))
	}
	return data, err
}

// keysOf are the scalars and lists of a configuration file as flags, with dots between the levels.
func keysOf(prefix string, n *yamldoc.Node) (list []Flag) {
	for _, f := range n.Fields {
		name := yamldoc.Join(prefix, f.Name)
		if f.Value.Kind == yamldoc.Map {
			list = append(list, keysOf(name, f.Value)...)
			continue
		}
		list = append(list, Flag{Name: name, Value: textOf(f.Value), Bare: f.Value.Kind == yamldoc.Null, File: true,
			At: f.At})
	}
	return list
}

// textOf is the value of a key as it would stand on a command line.
func textOf(n *yamldoc.Node) string {
	switch n.Kind {
	case yamldoc.Bool:
		return fmt.Sprint(n.Truth)
	case yamldoc.List:
		var parts []string
		for _, item := range n.Items {
			parts = append(parts, textOf(item))
		}
		return strings.Join(parts, ",")
	}
	return n.Text
}
