package launch

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/launch/shell"
	"clifftop/internal/pattern"
)

// switches are the flags of docker run that take no value; all others do.
var switches = []string{"-d", "--detach", "--init", "-i", "--interactive", "--no-healthcheck", "--oom-kill-disable",
	"--privileged", "-P", "--publish-all", "-q", "--quiet", "--read-only", "--rm", "--sig-proxy", "-t", "--tty", "-it",
	"-ti", "-dit", "-itd", "-dt", "-di", "--replace", "--tls-verify"}

// inContainer returns the command that docker run, podman run or nerdctl run starts in a container.
func inContainer(c *shell.Command) (inside shell.Command, ok bool) {
	at := slices.IndexFunc(c.Args, func(w shell.Word) bool {
		return slices.Contains([]string{"docker", "podman", "nerdctl"}, path.Base(w.Text))
	})
	if at < 0 || at+1 >= len(c.Args) {
		return inside, false
	}
	args := c.Args[at+1:]
	if args[0].Text == "container" && len(args) > 1 {
		args = args[1:]
	}
	if args[0].Text != "run" {
		return inside, false
	}
	inside = shell.Command{Line: c.Line, Env: slices.Clone(c.Env)}
	var entrypoint []shell.Word
	i := 1
	for ; i < len(args) && strings.HasPrefix(args[i].Text, "-"); i++ {
		name, value, joined := strings.Cut(args[i].Text, "=")
		if slices.Contains(switches, name) {
			continue
		}
		line := args[i].Line
		if !joined {
			if i++; i >= len(args) {
				return inside, false
			}
			value = args[i].Text
		}
		switch name {
		case "-e", "--env":
			if name, value, ok := strings.Cut(value, "="); ok {
				inside.Env = append(inside.Env, shell.Variable{Name: name, Value: value})
			}
		case "--entrypoint":
			for word := range strings.FieldsSeq(value) {
				entrypoint = append(entrypoint, shell.Word{Text: word, Line: line})
			}
		case "--gpus":
			inside.GPUs = countGPUs(value)
		}
	}
	if i >= len(args) {
		return inside, false
	}
	inside.Image = args[i].Text
	inside.Args = append(entrypoint, args[i+1:]...)
	if entrypoint == nil {
		inside.Args = withEntrypoint(inside.Args, inside.Image)
	}
	return inside, true
}

// countGPUs reads the value of --gpus: a number, all, or "device=0,1"; 0 is not known.
func countGPUs(value string) int {
	value = strings.Trim(value, `'"`)
	if n, err := strconv.Atoi(value); err == nil {
		return max(n, 0)
	}
	if list, ok := strings.CutPrefix(value, "device="); ok {
		return len(strings.Split(list, ","))
	}
	if n, ok := strings.CutPrefix(value, "count="); ok {
		return countGPUs(n)
	}
	return 0
}

// withEntrypoint adds the program that an image runs by itself, where a command has only its arguments.
func withEntrypoint(args []shell.Word, image string) []shell.Word {
	repository, _, _ := strings.Cut(path.Base(image), ":")
	if p, _ := find(args); p != nil || scriptAt(args) >= 0 {
		return args
	}
	if repository != "vllm-openai" && repository != "vllm-openai-rocm" && repository != "llm-d-cuda" {
		return args
	}
	if repository == "llm-d-cuda" && (len(args) == 0 || !strings.HasPrefix(args[0].Text, "-")) {
		return args
	}
	line := 1
	if len(args) > 0 {
		line = args[0].Line
	}
	return append([]shell.Word{{Text: "vllm", Line: line}, {Text: "serve", Line: line}}, args...)
}

var releaseTag = pattern.New(`(?:^|[-_:v])v?(\d+\.\d+(?:\.\d+)?(?:\.post\d+|rc\d+)?)(?:$|[-_.+])`)

// releaseOf reads the release of the engine from the tag of an image; "" if the tag has none, or names another program
// such as Dynamo.
func releaseOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	repository, tag, ok := strings.Cut(path.Base(name), ":")
	if !ok || !slices.ContainsFunc([]string{"vllm-openai", "sglang", "release", "vllm"}, func(s string) bool {
		return repository == s || strings.HasPrefix(repository, s+"-") && s == "vllm-openai"
	}) {
		return ""
	}
	m := releaseTag.Get().FindStringSubmatch(tag)
	if m == nil {
		return ""
	}
	return m[1]
}
