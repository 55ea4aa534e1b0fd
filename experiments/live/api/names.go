package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/scenario"
	"clifftop/workload"
)

// names are the names of the model and its LoRA adapters.
type names struct {
	models   []string // as listed
	also     []string // accepted too
	adapters []string // that have names of their own
	counted  int32    // adapters adapter-1, adapter-2 and so on
}

// maxListed is the number of numbered adapters in the list of models.
const maxListed = 100

// numbered begins the names of adapters that the scenario numbers.
const numbered = "adapter-"

func newNames(u *scenario.Setup, models []string) names {
	x := names{models: models}
	if len(models) == 0 {
		x.models = []string{u.Scenario.Model}
		x.also = append([]string{u.Pools[0].Deployment.LLM.Name}, u.Pools[0].Deployment.LLM.Aliases...)
	}
	w := &u.Scenario.Workload
	add := func(l *scenario.LoRA) {
		switch {
		case l == nil:
		case l.Name == "":
			x.counted = max(x.counted, int32(l.Adapters))
		case !slices.Contains(x.adapters, l.Name):
			x.adapters = append(x.adapters, l.Name)
		}
	}
	add(w.LoRA)
	for i := range w.Classes {
		add(w.Classes[i].LoRA)
	}
	if u.Traffic.Recording != nil && u.Traffic.UsesAdapters() {
		x.counted = workload.MaxAdapters
	}
	return x
}

// find returns the adapter that a name stands for; 0 is the base model, also without a name.
func (x *names) find(name *string) (int32, error) {
	if name == nil || *name == "" || slices.Contains(x.models, *name) || slices.Contains(x.also, *name) {
		return 0, nil
	}
	if i := slices.Index(x.adapters, *name); i >= 0 {
		return workload.MaxAdapters + int32(i) + 1, nil
	}
	if text, ok := strings.CutPrefix(*name, numbered); ok {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 1 && n <= int64(x.counted) {
			return int32(n), nil
		}
	}
	return 0, &failure{http.StatusNotFound, "model", "the model " + nameOf(*name) + " does not exist (want " +
		nameOf(x.models[0]) + ")"}
}

// answer returns the name of the model in responses.
func (x *names) answer(p *params) string {
	if p.adapter > 0 {
		return x.adapter(p.adapter)
	}
	return x.models[0]
}

func (x *names) adapter(number int32) string {
	if i := int(number) - workload.MaxAdapters - 1; i >= 0 && i < len(x.adapters) {
		return x.adapters[i]
	}
	return numbered + strconv.Itoa(int(number))
}

func (x *names) list() (models, adapters []string) {
	adapters = slices.Clone(x.adapters)
	for i := range min(x.counted, maxListed) {
		adapters = append(adapters, x.adapter(i+1))
	}
	return x.models, adapters
}
