package playground

import (
	"context"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report"
)

// Player runs the simulations that a page asks for. The zero value is ready. It is not safe for concurrent use.
type Player struct {
	bases map[[2]int]*scenario.Scenario // by lesson and step
	curve drawnCurve
}

// Point is one run of a scenario.
type Point struct {
	Summary *report.Summary      `json:"summary"`
	Series  []report.SeriesPoint `json:"series"`
	// YAML is the scenario as a file, of which clifftop run gives the same summary.
	YAML string `json:"yaml"`
	// Pool is the size of the KV pool; nil where it is unlimited.
	Pool *Pool `json:"pool"`
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
	r, err := experiments.RunSetup(ctx, u, experiments.RunOptions{})
	if err != nil {
		return nil, err
	}
	point := &Point{Summary: r.Summary, Series: r.Series, YAML: string(s.YAML())}
	if u.Config.NumGPUBlocks > 0 {
		point.Pool = &Pool{Blocks: u.Config.UsableBlocks(), BlockTokens: int(u.Config.BlockSize)}
	}
	return point, nil
}
