package launch

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/launch/flags"
)

// rules returns the rules by the name that the tables give them. They translate flags that no single key expresses. A
// rule accounts for its flag.
func rules() map[string]func(b *builder, f Flag) {
	return map[string]func(b *builder, f Flag){
		configFileRule: func(b *builder, f Flag) {
			b.fault(f, "", "file %s cannot be read (want it beside the file that names it)", f.Value)
		},
		"CUDA graphs":                (*builder).graphs,
		"KV format":                  kvFormat,
		"KV tokens":                  kvTokens,
		"KV transfer":                (*builder).transfer,
		"attention data parallelism": attentionRanks,
		"capacity":                   capacity,
		"chunks":                     chunks,
		"compilation":                (*builder).compilation,
		"draft tree":                 draftTree,
		"drafts":                     (*builder).drafts,
		"exchange of experts":        vllmExchange,
		"expert exchange":            expertExchange,
		"expert slots":               expertSlots,
		"model":                      func(b *builder, f Flag) { b.account(f, flags.Rule, "the model") },
		"offload":                    (*builder).offload,
		"parallelism":                func(*builder, Flag) {}, // builder.parallelism accounts for it
		"priority scheduling":        priorityScheduling,
		"redundant experts":          redundantExperts,
		"replicas":                   func(b *builder, f Flag) { b.account(f, flags.Rule, "the number of replicas") },
		"requests of all ranks":      seatsOfRanks,
		"reserve for outputs":        func(b *builder, f Flag) { reserve(b, f) },
		"role":                       func(b *builder, f Flag) { b.account(f, flags.Rule, "the role of the pool") },
		"router":                     func(b *builder, f Flag) { b.account(f, flags.Rule, "the router") },
		"the default":                theDefault,
		"the served name":            func(b *builder, f Flag) { b.account(f, flags.None, "the name for clients") },
		"weights":                    (*builder).weights,
		oldEngineRule:                (*builder).oldEngine,
	}
}

func (b *builder) rule(f Flag, k *flags.Flag) {
	apply := rules()[k.Rule]
	if apply == nil {
		b.fault(f, "", "package launch has no rule %q", k.Rule)
		return
	}
	apply(b, b.given[k.Name])
}

func (b *builder) has(name string) bool {
	f, ok := b.given[name]
	on, _ := readTruth(f.Value)
	return ok && on
}

// number reads the value of a flag that is a whole number; fallback if it is not given.
func (b *builder) count(name string, fallback int) int {
	f, ok := b.given[name]
	if !ok {
		return fallback
	}
	n, ok := humanInt(f.Value)
	if !ok {
		return fallback
	}
	return n
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// readTruth reads a truth value as the parsers of engines do.
func readTruth(s string) (on, ok bool) {
	switch strings.ToLower(s) {
	case "true", "1", "yes", "on":
		return true, true
	case "false", "0", "no", "off":
		return false, true
	}
	return false, false
}

func readNumber(s string) (float64, bool) {
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil
}
