package catalog

import (
	"fmt"

	"clifftop/model"
)

// exchangeRow has the constants of an exchange of tokens between data-parallel ranks and experts.
type exchangeRow struct {
	Latency  float64 `yaml:"latency_us"`
	FirstHop float64 `yaml:"first_hop_us"` // to a second scale-up domain
	NextHop  float64 `yaml:"next_hop_us"`  // for each doubling beyond
	Dispatch float64 `yaml:"dispatch_gb_per_s"`
	Combine  float64 `yaml:"combine_gb_per_s"`
	Network  float64 `yaml:"network"` // reached fraction
}

// exchangeFile is the format of kernels/exchange.yaml: rows by architecture and way.
type exchangeFile struct {
	Source  string                            `yaml:"source"`
	Classes map[string]map[string]exchangeRow `yaml:"classes"`
}

// constants sets the constants of the ways that were measured on GPUs of the architecture.
func (f *exchangeFile) constants(g *model.GPU, c *model.KernelConstants) error {
	class := g.Architecture
	if g.DomainSize() > g.NodeSize() && f.Classes[class+"_rack"] != nil {
		class += "_rack"
	}
	for name, r := range f.Classes[class] {
		way, err := model.ParseExchange(name)
		if err != nil {
			return fmt.Errorf("catalog: kernels/exchange.yaml: %w", err)
		}
		c.ExchangeRow = class + " exchange"
		c.Exchange[way] = model.ExchangeConstants{
			Latency: r.Latency * micro, FirstHop: r.FirstHop * micro, NextHop: r.NextHop * micro,
			Dispatch: r.Dispatch * 1e9, Combine: r.Combine * 1e9, Network: r.Network,
		}
	}
	return nil
}
