package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/layout"
)

type catalogCommand struct{ output console.OutputFlags }

func newCatalog() *cobra.Command {
	var k catalogCommand
	c := &cobra.Command{
		Use:   "catalog [KIND]",
		Short: "List models, GPUs, policies and other built-in names",
		Long: "List built-in names. KIND is " + strings.Join(catalogKinds(), ", ") +
			". JSON adds aliases and sources.",
		Args:      console.AtMostOne("kind"),
		ValidArgs: catalogKinds(),
		RunE:      k.run,
	}
	k.output.RegisterFormat(c, "table", "json")
	return c
}

func catalogKinds() []string { return append(experiments.CatalogKinds(), "lessons") }

func (k *catalogCommand) run(c *cobra.Command, args []string) error {
	kinds, w := catalogKinds(), c.OutOrStdout()
	if len(args) == 0 {
		_, err := fmt.Fprintf(w, "clifftop catalog %s\n", strings.Join(kinds, "\nclifftop catalog "))
		return console.Failed(err)
	}
	kind := args[0]
	if kind == "lessons" {
		return listLessons(w, k.output.Format)
	}
	if !slices.Contains(kinds, kind) {
		return yamldoc.Faults{{
			Where:   "catalog",
			Problem: fmt.Sprintf("%.40q is not known (want one of %s)", kind, strings.Join(kinds, ", ")),
			Hint:    yamldoc.DidYouMean(kind, kinds),
		}}
	}
	l, err := experiments.Catalog(kind)
	if err != nil {
		return err
	}
	return printListing(w, l, k.output.Format)
}

// printListing prints a listing as a table or as JSON.
func printListing(w io.Writer, l *experiments.Listing, format string) error {
	if format == "json" {
		return console.Failed(console.PrintJSON(w, l))
	}
	rows := propertyRows(l)
	if l.Kind == "presets" { // too many properties for columns
		rows = presetRows(l)
	}
	t := &layout.Text{}
	t.Table(rows, len(rows[0]), 2)
	_, err := t.WriteTo(w)
	return console.Failed(err)
}

// propertyRows returns a table with a column for each property.
func propertyRows(l *experiments.Listing) [][]string {
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
	return rows
}

// presetRows returns a table with a description of each preset.
func presetRows(l *experiments.Listing) [][]string {
	rows := [][]string{{"name", "traffic"}}
	for _, e := range l.Items {
		rows = append(rows, []string{e.Name, presetText(e)})
	}
	return rows
}

// presetText describes the traffic of a preset.
func presetText(e experiments.Entry) string {
	properties := map[string]any{}
	for _, p := range e.Properties {
		properties[p.Name] = p.Value
	}
	number := func(v any) string {
		if x, ok := v.(float64); ok {
			return layout.Significant(x, 3)
		}
		return cell(v)
	}
	text := cell(properties["title"])
	var figures []string
	if properties["mean_input_tokens"] != nil && properties["mean_output_tokens"] != nil {
		figures = append(figures, fmt.Sprintf("mean input %s and output %s tokens",
			number(properties["mean_input_tokens"]), number(properties["mean_output_tokens"])))
	}
	if properties["requests_per_s"] != nil {
		figures = append(figures, number(properties["requests_per_s"])+" requests/s")
	}
	if figures != nil {
		text += ": " + strings.Join(figures, ", ")
	}
	text += " (" + cell(properties["provenance"])
	if needs := cell(properties["needs"]); needs != "" && needs != "–" {
		text += "; needs " + needs
	}
	return text + ")"
}

// cell formats the value of a property.
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
