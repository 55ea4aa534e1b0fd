package manifest

import (
	"path"
	"slices"
	"strings"

	"clifftop/experiments/launch"
)

// isMarkdown reports whether a file is a page with launch lines, by its name.
func isMarkdown(name string, _ []byte) bool {
	return slices.Contains([]string{".md", ".markdown", ".mdx"}, strings.ToLower(path.Ext(name)))
}

// fence is a block of code of a page.
type fence struct {
	text string
	line int // at which the text begins
}

// readMarkdown reads the blocks of shell code of a page, each as a script of its own. A block with placeholders that is
// no shell code counts only if no other block can be read.
func readMarkdown(name string, data []byte, o Options) (*launch.System, error) {
	var commands []launch.Command
	var notes []launch.Note
	var broken error
	for _, f := range fences(string(data)) {
		at := o.ScriptOptions
		at.FirstLine = f.line
		list, remarks, err := launch.ReadScript(name, []byte(f.text), at)
		if err != nil {
			broken = err
			continue
		}
		commands = append(commands, list...)
		if len(list) > 0 {
			notes = append(notes, remarks...)
		}
	}
	if len(commands) == 0 && broken != nil {
		return nil, asFaults(broken)
	}
	return launch.Assemble(name, commands, notes, o.Line)
}

// fences are the blocks of shell code. Prompts at the beginning of lines are left out.
func fences(page string) (list []fence) {
	open, shell := "", false
	var b strings.Builder
	first := 0
	for i, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimSpace(line)
		mark := ""
		for _, m := range []string{"```", "~~~"} {
			if strings.HasPrefix(trimmed, m) {
				mark = m
			}
		}
		switch {
		case open == "" && mark != "":
			language, _, _ := strings.Cut(strings.TrimSpace(strings.TrimLeft(trimmed, "`~")), " ")
			shell = slices.Contains([]string{"", "bash", "sh", "shell", "console", "zsh", "bash,", "shell-session"},
				language)
			open, first = mark, i+2
			b.Reset()
		case open != "" && mark == open:
			if shell {
				list = append(list, fence{b.String(), first})
			}
			open = ""
		case open != "":
			b.WriteString(strings.TrimPrefix(line, "$ ") + "\n")
		}
	}
	return list
}
