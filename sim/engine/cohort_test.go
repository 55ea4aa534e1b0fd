package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/internal/pq"
)

// members returns a cohort of one sequence for each number of computed tokens. The sequences joined at step 0, and a
// block has 4 tokens.
func members(computed []int32) (*cohort, *slab) {
	seqs, c := new(slab), new(cohort)
	c.init(seqs, 4, true)
	for k, tokens := range computed {
		i := seqs.take()
		s := seqs.at(i)
		s.phase, s.target, s.serial, s.ends = decoding, tokens, int64(k+1), 100
		s.residue = (4 - tokens%4) % 4
		c.size++
		c.context += int64(tokens)
		c.takes.add(s.residue, 1)
		c.ends.Push(pq.Item[int32]{Key: s.ends, Tie: s.serial, Value: i})
		c.link(i)
	}
	return c, seqs
}

// Advancing by many steps gives the same sums as single steps, and both are the sums over the members.
func TestCohortAdvances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		computed := rapid.SliceOfN(rapid.Int32Range(1, 40), 1, 10).Draw(t, "computed")
		n := rapid.IntRange(1, 20).Draw(t, "steps")
		many, _ := members(computed)
		single, seqs := members(computed)
		many.advance(n)
		for range n {
			single.step()
		}
		sum := int64(0)
		for i := range seqs.items {
			sum += int64(single.computed(seqs.at(int32(i))))
		}
		if many.steps != single.steps || many.context != single.context || sum != single.context {
			t.Errorf("contexts %d and %d after %d steps, %d one by one", many.context, single.context, n, sum)
		}
	})
}

// The number of blocks that the members take in several steps is the sum over single steps.
func TestCohortTakesBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		computed := rapid.SliceOfN(rapid.Int32Range(1, 40), 1, 10).Draw(t, "computed")
		n := rapid.IntRange(1, 20).Draw(t, "steps")
		c, seqs := members(computed)
		want := 0
		for i := range seqs.items {
			tokens := seqs.at(int32(i)).target
			want += int((tokens+int32(n)+3)/4 - (tokens+3)/4)
		}
		if got := c.takes.over(0, n); got != want {
			t.Errorf("%d blocks in %d steps, want %d", got, n, want)
		}
	})
}

// The members of a residue are listed in running order, in whatever order they join and leave.
func TestCohortLists(t *testing.T) {
	c, seqs := members([]int32{4, 8, 12})
	list := func() (serials []int64) {
		for i := c.first[0]; i != none; i = seqs.at(i).nextSame {
			serials = append(serials, seqs.at(i).serial)
		}
		return serials
	}
	c.unlink(seqs.at(1))
	if got := list(); !slices.Equal(got, []int64{1, 3}) {
		t.Errorf("listed %v after the second left", got)
	}
	c.link(1)
	if got := list(); !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("listed %v after it returned", got)
	}
}

// nextFinish drops stale entries and returns the step of a member.
func TestCohortNextFinish(t *testing.T) {
	c, seqs := members([]int32{5, 6})
	seqs.at(0).ends = 7
	c.ends.Push(pq.Item[int32]{Key: 3, Tie: 1, Value: 0})
	c.ends.Push(pq.Item[int32]{Key: 7, Tie: 1, Value: 0})
	if got := c.nextFinish(); got != 7 {
		t.Errorf("the next member ends at step %d, want 7", got)
	}
}
