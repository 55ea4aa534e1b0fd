package simtest

import (
	"fmt"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/simtest/naive"
)

// pipeline checks that iterations pass the stages of a pipeline one after the other and in order, and that the stages
// together work no longer than the iterations last.
func (c *checker) pipeline() {
	if c.cfg.Stages <= 1 {
		return
	}
	left := make([]naive.Moment, c.cfg.Stages)
	var whole, worked timeSum
	for i := range c.t.Iterations {
		it := &c.t.Iterations[i]
		before := naive.Moment{}
		passages := parsePassages(it.Passages)
		c.want(len(passages) == len(left), "iteration %d: passages %s of %d stages", i, it.Passages, len(left))
		for k, p := range passages {
			enter := naive.Moment{At: clock.Time(p[0]), Femtos: p[1]}
			c.want(naive.Later(enter, left[k]) == enter && naive.Later(enter, before) == enter && p[1] >= 0 &&
				p[1] < clock.FemtosPerPico && p[2] >= 0,
				"iteration %d: passage %d of %s, after %v, and %v in the stage before", i, k, it.Passages, left[k],
				before)
			left[k] = enter.Plus(p[2])
			before = left[k]
		}
		end := clock.Progression{Start: it.Start, Remainder: it.Remainder, First: it.Femtos, N: 1}
		c.want(before == naive.Moment{At: end.End(1), Femtos: end.EndRemainder(1)},
			"iteration %d: ends at %v and leaves the last stage at %v", i, end.End(1), before)
		whole.add(c.cfg.Stages, clock.Duration(it.Femtos))
		worked.add(1, clock.Duration(it.Worked))
	}
	c.want(worked.Cmp(whole.Uint128) <= 0, "the stages work for %v fs of %v", worked, whole)
}

// passages formats the passages of an iteration in order, and adds up their times.
func passages(s *event.Span) (text string, femtos int64) {
	for _, p := range s.Passages {
		text += fmt.Sprintf(passageForm, int64(p.Enter), p.Remainder, p.Femtos)
		femtos += p.Femtos
	}
	return text, femtos
}

// passageForm is the format of an instant, a remainder and a length.
const passageForm = "(%d %d %d)"

func parsePassages(text string) (list [][3]int64) {
	for text != "" {
		var p [3]int64
		if _, err := fmt.Sscanf(text, passageForm, &p[0], &p[1], &p[2]); err != nil {
			return nil
		}
		list = append(list, p)
		text = text[len(fmt.Sprintf(passageForm, p[0], p[1], p[2])):]
	}
	return list
}
