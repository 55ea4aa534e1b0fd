package playground

import (
	"context"
	"fmt"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/steady"
	"clifftop/report"
	"clifftop/report/layout"
)

// Player runs the simulations that a page asks for. The zero value is ready. It is not safe for concurrent use.
type Player struct {
	bases   map[[2]int]*scenario.Scenario // by lesson and step
	systems map[string]*steady.Saturation // by scenario, whatever its load
	curve   drawnCurve
}

// Point is one run of a scenario.
type Point struct {
	Summary *report.Summary      `json:"summary"`
	Series  []report.SeriesPoint `json:"series"`
	// YAML is the scenario as a file. clifftop run of it gives the same summary.
	YAML string `json:"yaml"`
	// Pool is the size of the KV pool; nil where it is unlimited.
	Pool *Pool `json:"pool"`
	// Withheld says why throughput is not shown; empty if it is.
	Withheld string `json:"withheld"`
}

// Pool is the room for the KV of running requests.
type Pool struct {
	Blocks      int `json:"blocks"` // that can be used
	BlockTokens int `json:"block_tokens"`
}

// Point runs the scenario of a query.
func (p *Player) Point(ctx context.Context, q Query) (*Point, error) {
	s, err := p.scenario(q)
	if err != nil {
		return nil, err
	}
	u, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	system := &steady.Saturation{} // a closed loop has no saturation rate
	if !u.Traffic.Closed {
		if system, err = p.system(ctx, s, u); err != nil {
			return nil, err
		}
	}
	r, err := experiments.RunSetup(ctx, u, experiments.RunOptions{})
	if err != nil {
		return nil, err
	}
	judge(system, u, r.Summary)
	point := &Point{Summary: r.Summary, Series: r.Series, YAML: string(s.YAML()), Withheld: withhold(r.Summary)}
	if u.Pools[0].Config.NumGPUBlocks > 0 {
		point.Pool = &Pool{Blocks: u.Pools[0].Config.UsableBlocks(), BlockTokens: int(u.Pools[0].Config.BlockSize)}
	}
	return point, nil
}

// mostSystems is the number of systems that a player remembers.
const mostSystems = 100

// system finds the saturation of a scenario's system. It is remembered, because a slider of the load does not change
// it.
func (p *Player) system(ctx context.Context, s *scenario.Scenario, u *scenario.Setup) (*steady.Saturation, error) {
	key := ""
	if at, err := s.With(scenario.Setting{Key: scenario.RateKey, Value: "1", Flag: "rate"}); err == nil {
		key = string(at.YAML())
	}
	if found := p.systems[key]; found != nil && key != "" {
		return found, nil
	}
	found, err := steady.Sketch(ctx, u)
	if err != nil {
		return nil, err
	}
	if p.systems == nil || len(p.systems) >= mostSystems {
		p.systems = map[string]*steady.Saturation{}
	}
	p.systems[key] = found
	return found, nil
}

// judge says in a summary whether its run shows a steady state.
func judge(system *steady.Saturation, u *scenario.Setup, s *report.Summary) {
	c := system.Case(u)
	c.Judge(s)
}

// withhold removes the throughput of a run that is too short to measure it, and says why.
func withhold(s *report.Summary) string {
	if !s.TooShort() {
		return ""
	}
	offered := s.Throughput.OfferedRequestsPerS
	s.Throughput = report.Throughput{OfferedRequestsPerS: offered}
	s.Goodput.RequestsPerS, s.Goodput.OutputTokensPerS = nil, nil
	if s.Cost != nil {
		cost := *s.Cost
		cost.USDPerMillionOutputAtLoad = nil
		s.Cost = &cost
	}
	text := "the run is too short to measure it"
	if r := s.Saturation; r != nil {
		text += fmt.Sprintf("; the system saturates at %s requests/s", layout.Digits(r.LowRequestsPerS))
	}
	return text
}
