package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/launch"
	"clifftop/experiments/scenario/yamldoc"
)

// add adds a group of the object with a kind and a name. Further machines of an engine are no group, and replicas that
// are the machines of one engine are one replica.
func (r *reader) add(g launch.Group, kind, name string) {
	for _, f := range g.Line.Flags {
		n, err := strconv.Atoi(f.Value)
		switch strings.ReplaceAll(f.Name, "_", "-") {
		case "headless":
			return
		case "node-rank":
			if err == nil && n > 0 {
				return
			}
		case "nnodes":
			if err == nil && n > 1 && g.Nodes <= 1 {
				g.Nodes = n
				if g.Replicas == n {
					g.Replicas = 1
				}
			}
		}
	}
	g.Replicas, g.Nodes = max(g.Replicas, 0), max(g.Nodes, 1)
	if g.Name == "" {
		g.Name = name
	}
	if g.Role == "" {
		g.Role = g.Line.RoleOf()
	}
	if g.At.Line == 0 {
		g.At = g.Line.At
	}
	r.system.Groups = append(r.system.Groups, g)
	r.owners = append(r.owners, owner{kind, name})
}

// finish checks the groups of a file, gives them roles and names, and returns the system.
func (r *reader) finish() (*launch.System, error) {
	s := r.system
	if len(s.Groups) == 0 {
		return nil, r.nothing()
	}
	if n := len(s.Groups); r.o.Line > n {
		want := fmt.Sprintf("1 to %d", n)
		if n == 1 {
			want = "1: there is one engine here"
		}
		return nil, yamldoc.Faults{{Where: "--line", Problem: fmt.Sprintf("%d is not allowed (want %s)",
			r.o.Line, want)}}
	} else if r.o.Line > 0 {
		s.Groups = s.Groups[r.o.Line-1 : r.o.Line]
	}
	r.rolesByName()
	r.sameGPU()
	r.merge()
	for i := range s.Groups {
		if g := &s.Groups[i]; g.Replicas == 0 && g.Min == 0 && g.Max == 0 {
			r.note(g.At, "%s has 0 replicas; 1 is taken", g.Name)
			g.Replicas = 1
		}
	}
	if err := r.oneModel(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(s.Groups, func(a, b launch.Group) int { return order(a.Role) - order(b.Role) })
	unique(s.Groups)
	if len(s.Groups) == 1 && s.Name == "" {
		s.Name = s.Groups[0].Name
	}
	return s, nil
}

// order puts pools that compute prompts first.
func order(role string) int {
	if role == "prefill" {
		return 0
	}
	return 1
}

// sameGPU gives groups without a kind of GPU that of the others, where these agree.
func (r *reader) sameGPU() {
	kind, at := "", yamldoc.Place{}
	for _, g := range r.system.Groups {
		if g.Accelerator == "" {
			continue
		}
		if kind != "" && kind != g.Accelerator {
			return
		}
		kind, at = g.Accelerator, g.AcceleratorAt
	}
	for i := range r.system.Groups {
		if g := &r.system.Groups[i]; g.Accelerator == "" && kind != "" {
			g.Accelerator, g.AcceleratorAt = kind, at
			r.note(g.At, "%s names no GPU; %s, that of the other groups, is taken", g.Name, yamldoc.Short(kind))
		}
	}
}

// merge makes one group of several that launch equal engines.
func (r *reader) merge() {
	s := r.system
	for i := 1; i < len(s.Groups); i++ {
		g := &s.Groups[i]
		k := slices.IndexFunc(s.Groups[:i], func(h launch.Group) bool {
			return h.Role == g.Role && h.Nodes == g.Nodes && h.Accelerator == g.Accelerator && h.Scaler == nil &&
				g.Scaler == nil && h.Line.Same(&g.Line)
		})
		if k >= 0 {
			s.Groups[k].Replicas += g.Replicas
			s.Groups = slices.Delete(s.Groups, i, i+1)
			i--
		}
	}
}

// nothing is the fault of a file without an engine.
func (r *reader) nothing() error {
	problem := "no engine is launched here (want a container that runs vllm serve, sglang.launch_server, " +
		"trtllm-serve or a worker of dynamo)"
	if r.system.Router != nil {
		problem = "only a router is launched here (want the file that launches the engines)"
	}
	hint := ""
	if slices.Contains(r.others, "Kustomization") {
		hint = "kubectl kustomize FOLDER > rendered.yaml, then import rendered.yaml"
	} else if len(r.images) > 0 {
		slices.Sort(r.images)
		hint = "the images here are " + yamldoc.OneOf(slices.Compact(r.images)) +
			"; a command in the manifest says what they run"
	} else if len(r.others) > 0 {
		hint = "the objects here are " + yamldoc.OneOf(r.others)
		for _, kind := range r.others {
			if near := yamldoc.DidYouMean(kind, slices.Sorted(maps.Keys(objects))); near != "" && kind != "Service" {
				hint += "; " + near
				break
			}
		}
	}
	return yamldoc.Faults{{Where: r.name, Problem: problem, Hint: hint}}
}

// rolesByName gives two groups the roles that their names have, and a group beside one that prefills the other role.
func (r *reader) rolesByName() {
	groups := r.system.Groups
	named := func(part string) int {
		return slices.IndexFunc(groups, func(g launch.Group) bool {
			return g.Role == "" && strings.Contains(strings.ToLower(g.Name), part)
		})
	}
	if p, d := named("prefill"), named("decode"); len(groups) == 2 && p >= 0 && d >= 0 && p != d {
		groups[p].Role, groups[d].Role = "prefill", "decode"
	}
	has := func(role string) bool {
		return slices.ContainsFunc(groups, func(g launch.Group) bool { return g.Role == role })
	}
	for i := range groups {
		if groups[i].Role == "" && has("prefill") && !has("decode") {
			groups[i].Role = "decode"
		}
	}
	for i := range groups { // a pool alone computes both phases
		switch g := &groups[i]; {
		case g.Role == "decode" && !has("prefill"), g.Role == "prefill" && !has("decode"):
			r.note(g.At, "%s is a %s pool, but the file has no pool of the other role: it computes prompts and "+
				"outputs here",
				g.Name, g.Role)
			g.Role = "both"
		}
	}
}

// oneModel reports groups that serve different models: they are several systems.
func (r *reader) oneModel() error {
	var models, lines []string
	for i := range r.system.Groups {
		g := &r.system.Groups[i]
		if m := modelOf(&g.Line); !slices.Contains(models, m) {
			models = append(models, m)
		}
		lines = append(lines, fmt.Sprintf("%d is %s in line %d", i+1, g.Name, g.At.Line))
	}
	if len(models) < 2 {
		return nil
	}
	return yamldoc.Faults{{Where: r.name, Hint: strings.Join(lines, ", "),
		Problem: fmt.Sprintf("%d models are served here (want one; --line N chooses an engine)", len(models))}}
}

func modelOf(l *launch.Line) string {
	model := l.Model
	for _, f := range l.Flags {
		switch strings.ReplaceAll(f.Name, "_", "-") {
		case "model", "model-path":
			model = f.Value
		}
	}
	return model
}

func unique(groups []launch.Group) {
	seen := map[string]int{}
	for i := range groups {
		g := &groups[i]
		name := g.Name
		if name == "" {
			continue
		}
		if seen[name]++; seen[name] > 1 {
			g.Name = fmt.Sprintf("%s-%d", name, seen[name])
		}
	}
}
