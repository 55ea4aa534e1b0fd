package launch

import (
	"fmt"
	"slices"
	"strings"

	"clifftop/experiments/launch/flags"
	"clifftop/experiments/scenario/yamldoc"
)

// ImportOptions add what launch lines do not say.
type ImportOptions struct {
	// GPU is the kind of GPU; empty means the one of the file.
	GPU string
	// DefaultGPU is the kind of GPU if neither says it; empty makes that a fault.
	DefaultGPU string
	// Model is a model of the catalog, or a config.json, in the place of the one in the file.
	Model string
	// Source names the file, for the title.
	Source string
	// Beside reports whether a file is beside the one that is read, such as a config.json.
	Beside func(name string) bool
}

// Imported is a scenario made from a system.
type Imported struct {
	// Root is the scenario as a tree; [yamldoc.Marshal] writes it. Each value has its flag as comment.
	Root *yamldoc.Node
	// Accounts say of each flag what became of it.
	Accounts []Account
	// Assumed are sentences about the assumptions of the scenario.
	Assumed []string
	// Notes are remarks of the readers.
	Notes []Note
}

// Scenario translates a system into a scenario. The error is a [yamldoc.Faults] if flags are wrong or contradict each
// other, or if the model or the GPU is missing.
func (s *System) Scenario(o ImportOptions) (*Imported, error) {
	if len(s.Groups) == 0 {
		return nil, yamldoc.Faults{{Where: o.Source, Hint: s.unset(),
			Problem: "no engine is launched here (want a command such as vllm " +
				"serve MODEL, python -m sglang.launch_server, trtllm-serve or python -m dynamo.vllm)"}}
	}
	out := &Imported{Root: &yamldoc.Node{Kind: yamldoc.Map}, Notes: s.Notes}
	var faults yamldoc.Faults
	var builders []*builder
	for i := range s.Groups {
		b, err := newBuilder(s, i)
		if err != nil {
			return nil, err
		}
		b.build(o)
		builders = append(builders, b)
		faults = append(faults, b.faults...)
		out.Accounts = append(out.Accounts, b.accounts...)
		for _, text := range b.assumed {
			if !slices.Contains(out.Assumed, text) {
				out.Assumed = append(out.Assumed, text)
			}
		}
	}
	faults = append(faults, out.routerFlags(s)...)
	if len(faults) > 0 {
		return nil, faults
	}
	if name := s.Name; name != "" {
		out.Root.Put("name", yamldoc.Place{}, text(name))
	}
	for _, b := range builders {
		out.otherScheduler(b, apart(builders))
	}
	if len(builders) == 1 {
		for _, f := range builders[0].root.Fields {
			out.Root.Put(f.Name, f.At, f.Value)
		}
	} else {
		out.pools(builders)
	}
	if !apart(builders) { // KV goes from one pool to another only with disaggregated prefill
		out.Root.Put("disaggregation", yamldoc.Place{}, nil)
	}
	out.scale(builders)
	out.route(s.Router, builders)
	out.order()
	return out, nil
}

// unset is a hint that names variables without a value, on which it may depend what a script launches.
func (s *System) unset() string {
	var names []string
	for _, n := range s.Notes {
		if rest, ok := strings.CutPrefix(n.Text, noValueNote); ok {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("the script asks for %s: --env NAME=VALUE sets a variable", strings.Join(names, ", "))
}

// apart reports whether prefill and decode are disaggregated.
func apart(builders []*builder) bool {
	has := func(role string) bool {
		return slices.ContainsFunc(builders, func(b *builder) bool { return b.group.Role == role })
	}
	return has("prefill") && has("decode")
}

// pools writes the groups as pools. What is equal in all of them stands at the top.
func (m *Imported) pools(builders []*builder) {
	m.common(builders)
	list := &yamldoc.Node{Kind: yamldoc.List}
	for i, b := range builders {
		pool := &yamldoc.Node{Kind: yamldoc.Map}
		pool.Put("name", yamldoc.Place{}, text(b.group.poolName(i)))
		if b.group.Role != "" && apart(builders) {
			pool.Put("role", yamldoc.Place{}, text(b.group.Role))
		}
		deployment := b.root.Get("deployment")
		n := 1
		if deployment != nil {
			if v := deployment.Get("replicas"); v != nil {
				n = int(v.Number)
				deployment.Put("replicas", yamldoc.Place{}, nil)
			}
		}
		pool.Put("replicas", yamldoc.Place{}, whole(n))
		for _, f := range b.root.Fields {
			top := m.Root.Get(f.Name)
			switch {
			case !ofPool(f.Name), top != nil && written(top) == written(f.Value),
				f.Value.Kind == yamldoc.Map && len(f.Value.Fields) == 0:
			default:
				pool.Put(f.Name, f.At, f.Value)
			}
		}
		list.Items = append(list.Items, pool)
	}
	m.Root.Put("pools", yamldoc.Place{}, list)
	if apart(builders) && m.Root.Get("disaggregation") == nil {
		m.Root.Put("disaggregation", yamldoc.Place{}, &yamldoc.Node{Kind: yamldoc.Map})
	}
}

// ofPool reports whether a pool can have a section of its own.
func ofPool(name string) bool {
	return slices.Contains([]string{"model", "gpu", "deployment", "engine", "overheads"}, name)
}

// common writes what all pools share: model and GPU of the first, and the sections that no pool can have.
func (m *Imported) common(builders []*builder) {
	for _, b := range builders {
		for _, f := range b.root.Fields {
			top := m.Root.Get(f.Name)
			switch {
			case f.Name == "deployment" || f.Name == "engine" || f.Name == "overheads":
			case top == nil:
				m.Root.Put(f.Name, f.At, f.Value)
			case !ofPool(f.Name) && written(top) != written(f.Value):
				m.Assumed = append(m.Assumed, fmt.Sprintf("%s of the first pool that has it holds for all pools",
					f.Name))
			}
		}
	}
}

// written is a value as a scenario has it, without its comment.
func written(v *yamldoc.Node) string {
	plain := v.Clone()
	plain.Comment = ""
	return string(yamldoc.Marshal(wrap(plain)))
}

// otherScheduler lets vLLM's scheduler run the kernels of another engine where only vLLM's knows what the group does:
// sending KV to other pools, or drafts.
func (m *Imported) otherScheduler(b *builder, apart bool) {
	e := b.root.Get("engine")
	if chunks := b.root.Lookup("engine", "enable_chunked_prefill"); chunks != nil && chunks.Truth &&
		e.Get("policy") != nil &&
		e.Get("policy").Text == "vllm-v0" {
		e.Put("policy", yamldoc.Place{}, nil) // the V0 scheduler of a scenario takes whole prompts
		m.Assumed = append(m.Assumed, "engine.policy is vllm: the V0 engine with chunked prefill is not modelled")
	}
	if b.line.Engine == "vllm" || e == nil || !apart && e.Get("speculative") == nil {
		return
	}
	if own := e.Lookup(b.line.Engine, "chunked_prefill_size"); own != nil && b.group.Role != "decode" {
		e.Put("max_num_batched_tokens", own.At, own)
	}
	m.withoutOptions(b)
	for _, key := range []string{"policy", "version", "sglang", "trtllm"} {
		e.Put(key, yamldoc.Place{}, nil)
	}
	e.Put("kernels", yamldoc.Place{}, text(b.line.Engine))
	what := "drafts"
	if apart {
		what = "pools that compute prompts and outputs apart"
	}
	note := fmt.Sprintf("engine.kernels is %s, with vLLM's scheduler: that of %s does not simulate %s", b.line.Engine,
		b.line.Engine, what)
	if !slices.Contains(m.Assumed, note) {
		m.Assumed = append(m.Assumed, note)
	}
}

// withoutOptions notes which options of an engine's own scheduler that of vLLM does not have.
func (m *Imported) withoutOptions(b *builder) {
	own := b.root.Lookup("engine", b.line.Engine)
	if own == nil {
		return
	}
	var names []string
	for _, f := range own.Fields {
		if f.Name != "chunked_prefill_size" {
			names = append(names, f.Name)
		}
	}
	if len(names) > 0 {
		m.Assumed = append(m.Assumed, fmt.Sprintf("vLLM's scheduler has no %s of %s", strings.Join(names, ", "),
			b.line.Engine))
	}
}

func (g *Group) poolName(i int) string {
	if g.Name != "" {
		return g.Name
	}
	if g.Role != "" && g.Role != "both" {
		return g.Role
	}
	return fmt.Sprintf("pool-%d", i+1)
}

// wrap is a map with one value, so that a value can be marshalled.
func wrap(v *yamldoc.Node) *yamldoc.Node {
	n := &yamldoc.Node{Kind: yamldoc.Map}
	n.Put("v", yamldoc.Place{}, v)
	return n
}

// sections is the order of the keys in a scenario file.
var sections = []string{"name", "model", "allow_unknown", "gpu", "deployment", "engine", "overheads", "pools",
	"disaggregation", "offload", "lifecycle", "workload", "clients", "slo"}

// order sorts the sections.
func (m *Imported) order() {
	place := func(name string) int {
		if i := slices.Index(sections, name); i >= 0 {
			return i
		}
		return len(sections)
	}
	slices.SortStableFunc(m.Root.Fields, func(a, b yamldoc.Field) int { return place(a.Name) - place(b.Name) })
}

// newBuilder indexes the flags of a group.
func newBuilder(s *System, i int) (*builder, error) {
	g := &s.Groups[i]
	name := g.Line.Table
	if name == "" {
		name = g.Line.Engine
	}
	table, err := flags.Of(name)
	if err != nil {
		return nil, err
	}
	return &builder{system: s, group: g, line: &g.Line, table: table, index: i, root: &yamldoc.Node{Kind: yamldoc.Map},
		given: map[string]Flag{}}, nil
}

// build translates the flags of the group, one after the other, and then what follows from several of them.
func (b *builder) build(o ImportOptions) {
	b.policy()
	known := make([]*flags.Flag, len(b.line.Flags))
	for i, f := range b.line.Flags {
		known[i] = b.look(f)
	}
	for _, f := range b.line.Env {
		if k := b.table.Variable(f.Name); k == nil || k.Rule == "" || k.Rule == oldEngineRule {
			b.variable(f)
		}
	}
	b.model(o)
	b.gpu(o)
	for i, f := range b.line.Flags {
		if known[i] != nil && known[i].Effect() == flags.Key {
			b.key(f, known[i])
		}
	}
	b.parallelism()
	for i, f := range b.line.Flags {
		if k := known[i]; k != nil && k.Effect() == flags.Rule {
			b.rule(f, k)
		}
	}
	for _, f := range b.line.Env { // their rules need the model and the groups of GPUs
		if k := b.table.Variable(f.Name); k != nil && k.Rule != "" && k.Rule != oldEngineRule {
			b.variable(f)
		}
	}
	b.role()
	b.replicas()
}

// look finds a flag in the table and notes its value. A flag that the engine does not have is a fault.
func (b *builder) look(f Flag) *flags.Flag {
	find := b.table.Find
	if f.File {
		find = b.table.FileKey
	}
	k, negated := find(f.Name)
	if k == nil {
		b.fault(f, b.table.Nearest(f.Name), "unknown flag of %s (want one of docs/flags.md)", b.table.Program)
		return nil
	}
	if negated {
		f.Value = "false"
	} else if f.Bare && k.Type == "bool" && !f.File {
		f.Value = "true"
	}
	if name, ok := variableIn(f.Value); ok && k.Effect() != flags.None {
		b.fault(f, "--env "+name+"=VALUE sets it", "variable %s has no value", name)
		return nil
	}
	if f.Bare && f.File { // null is the default of the engine
		b.account(f, flags.None, "the default")
		return nil
	}
	if f.Bare && f.Value == "" && k.Effect() != flags.None {
		b.fault(f, "", "the value is missing (want %s)", wanted(k.Type))
		return nil
	}
	if before, twice := b.given[k.Name]; twice && before.Value != f.Value && !strings.Contains(f.Name, ".") &&
		k.Effect() != flags.None {
		b.fault(f, "", "%s contradicts %s", f.Written(), before.Written())
		return nil
	}
	if name, dotted, ok := strings.Cut(f.Name, "."); ok && !f.File && k.Type == "json" {
		f.Name, f.Value = name, merged(b.given[k.Name].Value, dotted, f.Value)
	}
	b.given[k.Name] = f
	switch k.Effect() {
	case flags.None:
		b.account(f, flags.None, "%s", k.None)
	case flags.Unmodelled:
		b.account(f, flags.Unmodelled, "%s", k.Unmodelled)
	}
	return k
}

// wanted says what a type of flag takes.
func wanted(kind string) string {
	switch kind {
	case "int":
		return "a whole number"
	case "float":
		return "a number"
	case "json":
		return "JSON"
	case "bool":
		return "true or false"
	}
	return "a value"
}

// ownVariables are the prefixes of the environment variables that an engine reads.
var ownVariables = map[string][]string{"vllm": {"VLLM_"}, "sglang": {"SGLANG_", "SGL_"}, "trtllm": {"TRTLLM_", "TLLM_"}}

// variable translates an environment variable. Variables of other programs have no influence on an engine.
func (b *builder) variable(f Flag) {
	k := b.table.Variable(f.Name)
	if k == nil {
		prefixes := ownVariables[b.line.Engine]
		if strings.HasPrefix(b.table.Engine, "dynamo-") {
			prefixes = append([]string{"DYN_"}, prefixes...)
		}
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(f.Name, p) }) {
			b.account(f, flags.Unmodelled, "no table has this variable of the engine")
		}
		return
	}
	b.given[k.Name] = f
	switch k.Effect() {
	case flags.Key:
		b.key(f, k)
	case flags.Rule:
		b.rule(f, k)
	case flags.Unmodelled:
		b.account(f, flags.Unmodelled, "%s", k.Unmodelled)
	case flags.None:
		b.account(f, flags.None, "%s", k.None)
	}
}

func (b *builder) key(f Flag, k *flags.Flag) {
	f = b.given[k.Name]
	value := f.Value
	if v, ok := k.Values[strings.ToLower(value)]; ok {
		value = v
	} else if k.Values != nil && k.Type == "str" {
		b.noValue(f, yamldoc.OneOf(sortedKeys(k.Values)))
		return
	}
	if value == "" { // the engine's own default
		b.account(f, flags.Key, "the default of %s", k.Sets)
		return
	}
	var n *yamldoc.Node
	switch k.Type {
	case "bool":
		on, ok := readTruth(value)
		if !ok {
			b.noValue(f, "true or false")
			return
		}
		n = truth(on != k.Negated)
	case "int":
		i, ok := b.int(f)
		if !ok {
			return
		}
		n = whole(i)
	case "float":
		x, ok := readNumber(value)
		if !ok {
			b.noValue(f, "a number")
			return
		}
		n = number(x)
	default:
		n = text(value)
	}
	b.put(k.Sets, n, f)
	b.account(f, flags.Key, "%s: %s", k.Sets, strings.TrimSpace(string(yamldoc.Marshal(wrap(n))[3:])))
}
