package structure

import (
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// components returns the strongly connected components of more than one node.
func components[T comparable](nodes []T, next func(T) map[T]bool) (found [][]T) {
	g, number := simple.NewDirectedGraph(), map[T]simple.Node{}
	for i, v := range nodes {
		number[v] = simple.Node(i)
		g.AddNode(simple.Node(i))
	}
	for _, v := range nodes {
		for w := range next(v) {
			if to, ok := number[w]; ok && w != v {
				g.SetEdge(g.NewEdge(number[v], to))
			}
		}
	}
	for _, c := range topo.TarjanSCC(g) {
		if len(c) < 2 {
			continue
		}
		var list []T
		for _, n := range c {
			list = append(list, nodes[n.ID()])
		}
		found = append(found, list)
	}
	return found
}
