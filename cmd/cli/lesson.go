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

	"clifftop/experiments/lessons"
	"clifftop/report/plot"
)

func newLesson() *cobra.Command {
	var output outputFlags
	var options lessons.Options
	c := &cobra.Command{
		Use:   "lesson [N|list]",
		Short: "Teach how serving behaves, in ten lessons for a class",
		Long: `Hold a lesson: say what is done, simulate it, show what came out in a table and a picture, say what
to look at and what is often got wrong, and check every claim on the results. Without a number,
or with list, print the titles.

With --out the scenarios, the pictures and the results are written too, so that a class can
repeat each step and change it.`,
		Example: `  clifftop lesson list
  clifftop lesson 3
  clifftop lesson 3 --out lesson-3`,
		Args: atMostOne("lesson"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			if all, err := lessons.All(); err == nil {
				for _, l := range all {
					names = append(names, cobra.CompletionWithDesc(strconv.Itoa(l.Number), l.Title))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			if len(args) == 0 || args[0] == "list" {
				if output.out != "" {
					return errors.New("--out: the list of lessons writes no files (want the number of a lesson, such as lesson 1 --out DIR)")
				}
				return listLessons(c.OutOrStdout(), output.format)
			}
			l, err := lessons.Find(args[0])
			if err != nil {
				return err
			}
			options.Check = output.check
			return holdLesson(c, l, &output, options)
		},
	}
	output.register(c, "table", "json", "markdown")
	output.registerRun(c)
	c.Flags().StringVarP(&output.out, "out", "o", "", "write the scenarios, lesson.json and the pictures into `DIR`")
	output.registerJobs(c, &options.Jobs)
	return c
}

// listLessons prints the titles.
func listLessons(w io.Writer, format string) error {
	l, err := lessons.Listing()
	if err != nil {
		return failed(err)
	}
	if format == "json" {
		return failed(printJSON(w, l))
	}
	return failed(printListing(w, l))
}

// holdLesson runs a lesson, and prints and writes what came out. A claim that fails makes the command fail.
func holdLesson(c *cobra.Command, l *lessons.Lesson, output *outputFlags, options lessons.Options) error {
	dir, err := output.directory()
	if err != nil {
		return err
	}
	bar := newProgress(c.ErrOrStderr(), output, "simulating")
	options.Progress = bar.counts()
	r, err := l.Run(c.Context(), options)
	bar.done()
	if err != nil {
		return failed(err)
	}
	place := cmp.Or(output.out, "lesson-"+strconv.Itoa(l.Number))
	printErr := printOnce(c.OutOrStdout(), func(w io.Writer) error {
		if output.format == "json" {
			return printJSON(w, r)
		}
		if output.format == "table" {
			forPeople(w)
		}
		if err := r.Write(w, place, output.format == "markdown", plot.DrawText); err != nil {
			return err
		}
		if dir != nil {
			return nil
		}
		_, err := fmt.Fprintf(w, "\nclifftop lesson %d --out %s writes the scenarios, for the commands above.\n", l.Number, place)
		return err
	})
	if dir != nil {
		if err := writeLesson(dir, l, r); err != nil {
			return failed(cmp.Or(printErr, err))
		}
		if !output.quiet {
			fmt.Fprintf(c.ErrOrStderr(), "clifftop: wrote the scenarios, lesson.json and the pictures into %s\n", dir.path)
		}
	}
	if printErr == nil && !r.Pass {
		printErr = fmt.Errorf("lesson %d: not all of its claims hold", l.Number)
	}
	return failed(printErr)
}

// writeLesson writes the scenarios, the results and the pictures.
func writeLesson(dir *directory, l *lessons.Lesson, r *lessons.Result) error {
	scenarios, err := l.Scenarios()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		err := dir.write(name, func(w io.Writer) error {
			_, err := w.Write(scenarios[name])
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := dir.writeJSON("lesson.json", r); err != nil {
		return err
	}
	for _, p := range r.Pictures {
		if err := plot.Draw(p.Picture).WriteFiles(p.Name, dir.write); err != nil {
			return err
		}
	}
	return nil
}
