package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/lessons"
	"clifftop/report/plot"
)

type lessonCommand struct{ output console.SimulationFlags }

func newLesson() *cobra.Command {
	var l lessonCommand
	c := &cobra.Command{
		Use:   "lesson [N|list]",
		Short: "Run a lesson on LLM serving: ten lessons for a class",
		Long: `Run a lesson: describe an experiment, simulate it, show the results in a table and a chart,
explain them and common mistakes, and check every claim against the results. Without a number, or with list,
print the titles.

With --out, the scenarios, the pictures and the results are also written, so that a class can repeat each step
and change it.`,
		Example: `  clifftop lesson list
  clifftop lesson 3
  clifftop lesson 3 --out lesson-3`,
		Args:              console.AtMostOne("lesson"),
		ValidArgsFunction: completeLessons,
		RunE:              l.run,
	}
	l.output.Register(c, "table", "json", "markdown")
	l.output.RegisterJobs(c)
	l.output.RegisterOut(c, "write the scenarios, lesson.json and the pictures into `DIR`")
	return c
}

func completeLessons(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var numbers []cobra.Completion
	if all, err := lessons.All(); err == nil {
		for _, l := range all {
			numbers = append(numbers, cobra.CompletionWithDesc(strconv.Itoa(l.Number), l.Title))
		}
	}
	return numbers, cobra.ShellCompDirectiveNoFileComp
}

func (l *lessonCommand) run(c *cobra.Command, args []string) error {
	if len(args) == 0 || args[0] == "list" {
		if l.output.Out != "" {
			return errors.New("--out: the list of lessons writes no files " +
				"(want the number of a lesson, such as lesson 1 --out DIR)")
		}
		return listLessons(c.OutOrStdout(), l.output.Format)
	}
	lesson, err := lessons.Find(args[0])
	if err != nil {
		return err
	}
	return l.teach(c, lesson)
}

// listLessons prints the titles of the lessons.
func listLessons(w io.Writer, format string) error {
	l, err := lessons.Listing()
	if err != nil {
		return console.Failed(err)
	}
	return printListing(w, l, format)
}

// teach runs a lesson, and prints and writes the results. It returns an error if a claim fails.
func (l *lessonCommand) teach(c *cobra.Command, lesson *lessons.Lesson) error {
	dir, err := l.output.Directory()
	if err != nil {
		return err
	}
	bar := l.output.NewProgress(c, "simulating")
	options := lessons.Options{Check: l.output.Check, Jobs: l.output.Jobs, Progress: bar.Counts()}
	r, err := lesson.Run(c.Context(), options)
	bar.Done()
	if err != nil {
		return console.Failed(err)
	}
	place := cmp.Or(l.output.Out, "lesson-"+strconv.Itoa(lesson.Number))
	printErr := l.output.Print(c, lessonTable{r, place, l.output.Out != ""})
	if dir != nil {
		if err := writeLesson(dir, lesson, r); err != nil {
			return console.Failed(cmp.Or(printErr, err))
		}
		l.output.Say(c, "wrote the scenarios, lesson.json and the pictures into %s", dir.Path)
	}
	if printErr == nil && !r.Pass {
		printErr = fmt.Errorf("lesson %d: not all claims hold", lesson.Number)
	}
	return console.Failed(printErr)
}

// lessonTable is the result of a lesson with the directory that its commands name.
type lessonTable struct {
	*lessons.Result
	place   string
	written bool // the scenarios are written into the directory
}

func (t lessonTable) WriteTable(w io.Writer) error { return t.write(w, false) }

// WriteMarkdown writes the lesson as Markdown.
func (t lessonTable) WriteMarkdown(w io.Writer) error { return t.write(w, true) }

func (t lessonTable) write(w io.Writer, markdown bool) error {
	err := t.Write(w, t.place, markdown, plot.DrawText)
	if err != nil || t.written {
		return err
	}
	_, err = fmt.Fprintf(w, "\nclifftop lesson %d --out %s writes the scenarios for the commands above.\n",
		t.Number, t.place)
	return err
}

// writeLesson writes the scenarios, the results and the pictures of a lesson.
func writeLesson(dir *console.Directory, l *lessons.Lesson, r *lessons.Result) error {
	scenarios, err := l.Scenarios()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		if err := dir.WriteBytes(name, scenarios[name]); err != nil {
			return err
		}
	}
	if err := dir.WriteJSON("lesson.json", r); err != nil {
		return err
	}
	for _, p := range r.Pictures {
		if err := plot.Draw(p.Picture).WriteFiles(p.Name, dir.Write); err != nil {
			return err
		}
	}
	return nil
}
