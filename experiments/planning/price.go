package planning

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"clifftop/experiments/scenario"
	"clifftop/model/catalog"
)

// price is the price of a GPU for an hour and where it comes from; ok is false where none is known. The
// scenario's own prices come first, then cost.gpu_hour for its own GPU, then the middle of the catalog's range.
func price(s *scenario.Scenario, u *scenario.Setup) (usd float64, source string, ok bool) {
	gpu := &u.Pools[0].Deployment.GPU
	prices := s.Planning().Prices
	for _, name := range slices.Sorted(maps.Keys(prices)) {
		if strings.EqualFold(name, gpu.Name) || slices.ContainsFunc(gpu.Aliases, func(a string) bool {
			return strings.EqualFold(a, name)
		}) {
			return prices[name], "plan.prices", true
		}
	}
	if own, err := catalog.GPU(s.GPU); s.Cost.GPUHour != nil && (err != nil || own.Name == gpu.Name) {
		return *s.Cost.GPUHour, "cost.gpu_hour", true
	}
	if low, high := gpu.USDPerHour[0], gpu.USDPerHour[1]; high > 0 {
		return (low + high) / 2, fmt.Sprintf("middle of $%.2f to $%.2f, %s", low, high, gpu.PriceNote), true
	}
	return 0, "", false
}
