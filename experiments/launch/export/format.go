package export

import (
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
)

// Format is a kind of deployment.
type Format struct {
	// Name is the name on the command line, and Does describes the output in one line.
	Name, Does string

	write func(j *job) ([]File, error)
}

// File is a file of a deployment.
type File struct {
	Name string
	Data []byte
}

// Formats are all kinds, in the order of the help. To add one, add its entry here.
func Formats() []Format {
	return []Format{
		{"command", "a shell script: the launch lines of engines and router", command},
		{"compose", "a compose file with GPU reservations", compose},
		{"kubernetes", "Deployments or LeaderWorkerSets, Services and an autoscaler", kubernetes},
		{"helm", "values for the chart of vLLM's production stack", helm},
		{"llm-d", "values for llm-d's modelservice chart", llmD},
		{"dynamo", "a DynamoGraphDeployment", dynamo},
		{"keda", "a KEDA ScaledObject for each pool", keda},
	}
}

// job is the deployment that a format writes.
type job struct {
	system *launch.System
	setup  *scenario.Setup
	target *Target
	name   string // of the objects, a DNS label
}

// Write writes a deployment in a format, with the command that verifies it. target is the target of an autoscaler; nil
// is the scenario's own, or none.
func Write(format string, u *scenario.Setup, target *Target) ([]File, error) {
	s, err := fromSetup(u)
	if err != nil {
		return nil, err
	}
	fallback(u, s, format)
	j := &job{system: s, setup: u, target: target, name: label(cmpOr(s.Name, u.Pools[0].Deployment.LLM.Name))}
	for _, f := range Formats() {
		if f.Name != format {
			continue
		}
		files, err := f.write(j)
		if err != nil {
			return nil, err
		}
		return append(files, File{"verify.sh", bench(u)}), nil
	}
	return nil, fmt.Errorf("there is no format %q", format)
}

func label(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0:
			b.WriteByte('-')
		}
	}
	const most = 40
	text := b.String()
	text = strings.Trim(text[:min(len(text), most)], "-")
	if text == "" || text[0] >= '0' && text[0] <= '9' {
		text = "llm-" + text
	}
	return strings.TrimSuffix(text, "-")
}

// poolLabel is the name of the objects of a group.
func (j *job) poolLabel(i int) string {
	if len(j.system.Groups) == 1 {
		return j.name
	}
	g := &j.system.Groups[i]
	return j.name + "-" + label(cmpOr(g.Name, cmpOr(g.Role, strconv.Itoa(i+1))))
}

// comments are the notes as lines that begin with #.
func (j *job) comments() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", plain(j.setup.Serving("")))
	for _, n := range j.system.Notes {
		fmt.Fprintf(&b, "# Not in this deployment: %s\n", plain(n.Text))
	}
	return b.String()
}

func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
}

// quote is a word of a shell script.
func quote(s string) string {
	q, err := syntax.Quote(s, syntax.LangBash)
	if err != nil { // a zero byte, which no argument can have
		return "''"
	}
	return q
}

// program is the command of an engine without its arguments.
func program(engine string) []string {
	switch engine {
	case "sglang":
		return []string{"python3", "-m", "sglang.launch_server"}
	case "trtllm":
		return []string{"trtllm-serve"}
	}
	return []string{"vllm", "serve"}
}

// optionsFlag names the file of options of TensorRT-LLM.
const optionsFlag = "extra_llm_api_options"

// arguments are the arguments of a launch line: the model and its flags. optionsFile names the file with the keys that
// [options] returns.
func arguments(l *launch.Line, optionsFile string) (args []string) {
	if l.Engine == "sglang" {
		args = append(args, "--model-path", l.Model)
	} else {
		args = append(args, l.Model)
	}
	file := false
	for _, f := range l.Flags {
		switch {
		case f.File:
			file = true
		case f.Bare:
			args = append(args, "--"+f.Name)
		default:
			args = append(args, "--"+f.Name, f.Value)
		}
	}
	if file {
		args = append(args, "--"+optionsFlag, optionsFile)
	}
	return args
}

// options is the file of options of a line; nil if it has none.
func options(l *launch.Line) []byte {
	root := &yamldoc.Node{Kind: yamldoc.Map}
	for _, f := range l.Flags {
		if !f.File {
			continue
		}
		names := strings.Split(f.Name, ".")
		n := root
		for _, name := range names[:len(names)-1] {
			n = n.MapAt(name, yamldoc.Place{})
		}
		n.Put(names[len(names)-1], yamldoc.Place{}, value(f.Value))
	}
	if len(root.Fields) == 0 {
		return nil
	}
	return yamldoc.Marshal(root)
}

// value is a text as a YAML value: a number or a truth value where it is one.
func value(s string) *yamldoc.Node {
	if s == "true" || s == "false" {
		return &yamldoc.Node{Kind: yamldoc.Bool, Truth: s == "true"}
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return &yamldoc.Node{Kind: yamldoc.Number, Text: s}
	}
	return str(s)
}

func str(s string) *yamldoc.Node { return &yamldoc.Node{Kind: yamldoc.Text, Text: s} }

func number(n int) *yamldoc.Node {
	return &yamldoc.Node{Kind: yamldoc.Number, Number: float64(n), Text: strconv.Itoa(n), Whole: true}
}

// decimal is a number that may have a fraction.
func decimal(x float64) *yamldoc.Node {
	return &yamldoc.Node{Kind: yamldoc.Number, Number: x, Text: strconv.FormatFloat(x, 'f', -1, 64)}
}

func strs(list ...string) *yamldoc.Node {
	n := &yamldoc.Node{Kind: yamldoc.List}
	for _, s := range list {
		n.Items = append(n.Items, str(s))
	}
	return n
}

func list(items ...*yamldoc.Node) *yamldoc.Node {
	return &yamldoc.Node{Kind: yamldoc.List, Items: items}
}

// object is a map of names and values in turn. A nil value leaves its name out.
func object(pairs ...any) *yamldoc.Node {
	n := &yamldoc.Node{Kind: yamldoc.Map}
	for i := 0; i+1 < len(pairs); i += 2 {
		name := pairs[i].(string)
		switch v := pairs[i+1].(type) {
		case *yamldoc.Node:
			if v != nil {
				n.Put(name, yamldoc.Place{}, v)
			}
		case string:
			n.Put(name, yamldoc.Place{}, str(v))
		case int:
			n.Put(name, yamldoc.Place{}, number(v))
		case bool:
			n.Put(name, yamldoc.Place{}, &yamldoc.Node{Kind: yamldoc.Bool, Truth: v})
		}
	}
	return n
}

// documents joins objects to one file.
func (j *job) documents(objects ...*yamldoc.Node) []byte {
	var b strings.Builder
	b.WriteString(j.comments())
	for i, o := range objects {
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(yamldoc.Marshal(o))
	}
	return []byte(b.String())
}
