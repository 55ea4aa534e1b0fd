package export_test

import (
	"cmp"
	"slices"
)

// sortEvents puts slices in order of their start, longer ones first, as viewers do.
func sortEvents(list []traceEvent) {
	slices.SortStableFunc(list, func(a, b traceEvent) int {
		return cmp.Or(cmp.Compare(*a.At, *b.At), -cmp.Compare(*a.Length, *b.Length))
	})
}
