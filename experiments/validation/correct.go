package validation

import (
	"fmt"
	"time"

	"clifftop/experiments/scenario"
	"clifftop/model"
)

// Corrected are the cases on GPUs whose constants were changed and, where frontend is not negative, behind a
// front end that takes so many seconds. Runs whose clock starts behind the front end keep that.
func Corrected(cases []*Case, change func(*model.GPU), frontend float64) ([]*Case, error) {
	list := make([]*Case, len(cases))
	for i, c := range cases {
		p := part{Name: "correction", gpu: change}
		if u := c.setup; u != nil && frontend >= 0 && u.Pools[0].Config.Frontend > 0 {
			delay := time.Duration(frontend * float64(time.Second)).String()
			p.settings = []scenario.Setting{{Key: "overheads.frontend", Value: delay, Flag: "calibration"}}
		}
		var err error
		if list[i], err = c.without(p); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Rows[0].ID, err)
		}
	}
	return list, nil
}

// Setup returns the simulated setup of the case; nil if no scenario expresses the case.
func (c *Case) Setup() *scenario.Setup {
	if c.Refused != "" || c.Bad != "" {
		return nil
	}
	return c.setup
}
