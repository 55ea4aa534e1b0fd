package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/experiments"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/layout"
)

func newCatalog() *cobra.Command {
	var output outputFlags
	kinds := append(experiments.CatalogKinds(), "lessons")
	c := &cobra.Command{
		Use:       "catalog [KIND]",
		Short:     "List what is known, with sources",
		Long:      "List what is known: KIND is " + strings.Join(kinds, ", ") + ". JSON has the aliases and the sources too.",
		Args:      atMostOne("kind"),
		ValidArgs: kinds,
		RunE: func(c *cobra.Command, args []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			if len(args) == 0 {
				_, err := fmt.Fprintf(c.OutOrStdout(), "clifftop catalog %s\n", strings.Join(kinds, "\nclifftop catalog "))
				return failed(err)
			}
			if args[0] == "lessons" {
				return listLessons(c.OutOrStdout(), output.format)
			}
			if !slices.Contains(kinds, args[0]) {
				return yamldoc.Faults{{
					Where: "catalog", Problem: fmt.Sprintf("%.40q is not known (want one of %s)", args[0], strings.Join(kinds, ", ")), Hint: yamldoc.DidYouMean(args[0], kinds),
				}}
			}
			l, err := experiments.Catalog(args[0])
			if err != nil {
				return err
			}
			if output.format == "json" {
				return failed(printJSON(c.OutOrStdout(), l))
			}
			return failed(printListing(c.OutOrStdout(), l))
		},
	}
	output.register(c, "table", "json")
	return c
}

func printListing(w io.Writer, l *experiments.Listing) error {
	head := []string{"name"}
	for _, p := range l.Items[0].Properties {
		head = append(head, p.Name)
	}
	rows := [][]string{head}
	for _, e := range l.Items {
		cells := []string{e.Name}
		for _, p := range e.Properties {
			cells = append(cells, cell(p.Value))
		}
		rows = append(rows, cells)
	}
	if l.Kind == "presets" { // of numbers and words: too wide for columns
		rows = [][]string{{"name", "traffic"}}
		for _, e := range l.Items {
			rows = append(rows, []string{e.Name, presetText(e)})
		}
	}
	t := &layout.Text{}
	t.Table(rows, len(rows[0]), 2)
	_, err := t.WriteTo(w)
	return err
}

// presetText says what a preset is like.
func presetText(e experiments.Entry) string {
	of := map[string]any{}
	for _, p := range e.Properties {
		of[p.Name] = p.Value
	}
	number := func(v any) string {
		if x, ok := v.(float64); ok {
			return layout.Significant(x, 3)
		}
		return cell(v)
	}
	text := cell(of["title"])
	var figures []string
	if of["mean_input_tokens"] != nil && of["mean_output_tokens"] != nil {
		figures = append(figures, fmt.Sprintf("prompts of %s and answers of %s tokens", number(of["mean_input_tokens"]), number(of["mean_output_tokens"])))
	}
	if of["requests_per_s"] != nil {
		figures = append(figures, number(of["requests_per_s"])+" requests/s")
	}
	if figures != nil {
		text += ": " + strings.Join(figures, ", ")
	}
	text += " (" + cell(of["provenance"])
	if needs := cell(of["needs"]); needs != "" && needs != "–" {
		text += "; needs " + needs
	}
	return text + ")"
}

func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case string:
		return v
	case []string:
		return strings.Join(v, ", ")
	case []float64:
		var parts []string
		for _, x := range v {
			parts = append(parts, fmt.Sprint(x))
		}
		return strings.Join(parts, "–")
	}
	b, _ := json.Marshal(v)
	return string(b)
}
