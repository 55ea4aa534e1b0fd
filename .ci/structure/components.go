package structure

// components returns the strongly connected components of more than one node, by Tarjan's algorithm.
func components[T comparable](nodes []T, next func(T) map[T]bool) (found [][]T) {
	index, low, open := map[T]int{}, map[T]int{}, map[T]bool{}
	var stack []T
	var visit func(v T)
	visit = func(v T) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack, open[v] = append(stack, v), true
		for w := range next(v) {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if open[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		first := len(stack) - 1
		for stack[first] != v {
			first--
		}
		for _, w := range stack[first:] {
			open[w] = false
		}
		if len(stack)-first > 1 {
			found = append(found, append([]T(nil), stack[first:]...))
		}
		stack = stack[:first]
	}
	for _, v := range nodes {
		if index[v] == 0 {
			visit(v)
		}
	}
	return found
}
