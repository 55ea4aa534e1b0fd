package structure

import (
	"fmt"
	"go/types"
	"path"
	"slices"
	"strings"
)

// knots are the packages whose share of file arrows in cycles is judged.
var knots = []string{"sim/engine", "experiments/scenario", "model", "report/collect", "sim"}

// fileArrows is measure 7: pairs of files A, B of one package, where A uses a package-level name, method or field that
// B declares; and the share of them, in percent, inside a strongly connected component.
func fileArrows(m *module, f *figures) {
	arrows, cyclic := 0, 0
	for _, p := range m.packages {
		names, graph := m.uses(p)
		group := map[string]int{}
		for i, c := range components(names, func(a string) map[string]bool { return graph[a] }) {
			for _, name := range c {
				group[name] = i + 1
			}
			slices.Sort(c)
			f.detail(7, p.short, fmt.Sprintf("%s: %d of %d files use each other: %s", p.short, len(c), len(names),
				strings.Join(c, ", ")))
		}
		n, inside := 0, 0
		for from, to := range graph {
			for b := range to {
				n++
				if group[from] > 0 && group[from] == group[b] {
					inside++
				}
			}
		}
		arrows, cyclic = arrows+n, cyclic+inside
		if slices.Contains(knots, p.short) {
			f.set(7, p.short, "%", share(inside, n))
		}
		if inside > 0 {
			f.detail(7, p.short, fmt.Sprintf("%s: %d of %d arrows in cycles", p.short, inside, n))
		}
	}
	f.set(7, all, "%", share(cyclic, arrows))
	f.detail(7, all, fmt.Sprintf("%d of %d arrows in cycles", cyclic, arrows))
}

// share returns n/of in whole percent.
func share(n, of int) int {
	if of == 0 {
		return 0
	}
	return (200*n + of) / (2 * of)
}

// uses returns the files of a package and which others each of them uses.
func (m *module) uses(p *pkg) (names []string, graph map[string]map[string]bool) {
	graph = map[string]map[string]bool{}
	for _, f := range p.Syntax {
		name := path.Base(m.below(m.fset.Position(f.Package).Filename))
		names, graph[name] = append(names, name), map[string]bool{}
	}
	for id, o := range p.TypesInfo.Uses {
		if o.Pkg() != p.Types {
			continue
		}
		v, ok := o.(*types.Var)
		if field := ok && v.IsField(); !field && o.Parent() != nil && o.Parent() != p.Types.Scope() {
			continue // a local name
		}
		from := path.Base(m.below(m.fset.Position(id.Pos()).Filename))
		to := path.Base(m.below(m.fset.Position(o.Pos()).Filename))
		if from != to && graph[from] != nil && graph[to] != nil {
			graph[from][to] = true
		}
	}
	return names, graph
}
