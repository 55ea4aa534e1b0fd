package scenario_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments/scenario"
)

// Old names of keys and values are read and reported with the new ones.
func TestOldNames(t *testing.T) {
	const file = "engine: {order: {rule: sjf, size: %s, %s: 3}}\ndeployment: {replicas: 2, router: {policy: " +
		"least-tokens, %s: 9}}\n"
	resolve := func(names ...any) *scenario.Setup {
		s, err := scenario.Parse("old.yaml", fmt.Appendf(nil, file, names...))
		if err != nil {
			t.Fatal(err)
		}
		if s, err = s.With(); err != nil { // a further decoding changes nothing
			t.Fatal(err)
		}
		u, err := s.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	old, now := resolve("answer", "answer_weight", "answer"), resolve("output", "output_weight", "assumed_output")
	if !reflect.DeepEqual(old.Pools[0].Config.Order, now.Pools[0].Config.Order) {
		t.Errorf("the old names give order %+v, the new ones %+v", old.Pools[0].Config.Order, now.Pools[0].Config.Order)
	}
	var texts []string
	for _, w := range old.Warnings {
		if w.Code == "renamed" {
			texts = append(texts, w.Text)
		}
	}
	want := []string{
		"engine.order.output_weight: line 1: answer_weight is now called output_weight; the old name works in this " +
			"release only",
		"engine.order.size: line 1: answer is now called output; the old name works in this release only",
		"deployment.router.assumed_output: line 2: answer is now called assumed_output; the old name works in this " +
			"release only",
	}
	slices.Sort(texts)
	slices.Sort(want)
	if !slices.Equal(texts, want) {
		t.Errorf("warnings:\n%s\nwant:\n%s", strings.Join(texts, "\n"), strings.Join(want, "\n"))
	}
	for _, w := range now.Warnings {
		if w.Code == "renamed" {
			t.Errorf("unexpected: %s", w.Text)
		}
	}
}
