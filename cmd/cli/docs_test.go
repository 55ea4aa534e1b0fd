package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/launch/shell"
)

// TestDocumentedCommands parses the flags and arguments of each clifftop command in a ```sh block of the documentation.
func TestDocumentedCommands(t *testing.T) {
	const root = "../.."
	tested := map[string]int{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "testdata" || d.Name() == ".git"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, b := range shellBlocks(string(text)) {
			script, err := shell.Run(path, []byte(b.text), shell.Options{FirstLine: b.line})
			if err != nil {
				t.Error(err)
				continue
			}
			for _, c := range script.Commands {
				args := clifftopArgs(c)
				if args == nil {
					continue
				}
				tested[filepath.Base(path)]++
				if err := parseOnly(args); err != nil {
					t.Errorf("%s:%d: clifftop %s: %v", path, b.line+c.Line-1, strings.Join(args, " "), err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if tested["README.md"] < 10 || tested["tour.md"] < 50 {
		t.Errorf("commands found: %v (want 10 of README.md files and 50 of tour.md)", tested)
	}
}

// block is a piece of a text, and the line of the text at which it begins.
type block struct {
	text string
	line int
}

// shellBlocks returns the fenced blocks of a Markdown text that are marked sh.
func shellBlocks(text string) []block {
	var list []block
	inside := false
	for i, line := range strings.SplitAfter(text, "\n") {
		switch fence := strings.TrimSpace(line); {
		case !inside && fence == "```sh":
			list, inside = append(list, block{line: i + 2}), true
		case inside && fence == "```":
			inside = false
		case inside:
			list[len(list)-1].text += line
		}
	}
	return list
}

// clifftopArgs returns the arguments of a command that starts clifftop, and nil for other programs.
func clifftopArgs(c shell.Command) []string {
	words := []string{}
	for _, w := range c.Args {
		words = append(words, w.Text)
	}
	if len(words) > 2 && slices.Equal(words[:2], []string{"go", "run"}) {
		words = words[2:]
	}
	if filepath.Base(words[0]) != "clifftop" {
		return nil
	}
	return words[1:]
}

// parseOnly does what the command line does before a command starts: it finds the command, parses its flags, and checks
// flags and arguments.
func parseOnly(args []string) error {
	root := newRoot(nil)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	console.RejectUnknownTopics(root)
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := c.ParseFlags(rest); err != nil {
		return err
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		return err
	}
	if c.PreRunE != nil {
		return c.PreRunE(c, c.Flags().Args())
	}
	return nil
}
