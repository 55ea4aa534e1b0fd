package report

// poolClasses pools the classes of several runs by their names; one that a run lacks is left out.
func poolClasses(runs []*Summary) []Class {
	var pooled []Class
	for _, k := range runs[0].Classes {
		var of []*Summary
		for _, r := range runs {
			for _, x := range r.Classes {
				if x.Name == k.Name {
					of = append(of, &Summary{
						Window: r.Window, Requests: x.Requests, Throughput: x.Throughput, Latency: x.Latency,
						Goodput: x.Goodput,
						System:  System{PrefixHitRate: x.PrefixHitRate},
					})
				}
			}
		}
		if len(of) < len(runs) {
			continue
		}
		s := Pool(of)
		pooled = append(pooled, Class{
			Name: k.Name, Requests: s.Requests, Throughput: s.Throughput, Latency: s.Latency, Goodput: s.Goodput,
			PrefixHitRate: s.System.PrefixHitRate,
		})
	}
	return pooled
}
