package workload

import (
	"fmt"
	"math"
)

// SessionSpec makes requests turns of conversations. The prompt of turn 1 is the system prompt and a first prompt;
// every later prompt repeats the previous prompt and its visible output and adds user text:
//
//	input(1) = system prompt + first prompt
//	input(k) = input(k−1) + output(k−1) + later user tokens
//
// A prefix cache can therefore reuse all but the last part. Outputs follow [Spec.Output]. [Spec.Input] is not used,
// because whole prompts would count the context twice.
//
// In an open loop the arrival process starts conversations, at 1/turns of the request rate. In a closed loop each
// user holds one conversation after another, with the arrivals' think time between them.
type SessionSpec struct {
	// Turns is the distribution of the number of requests per conversation.
	Turns LengthsSpec `yaml:"turns" json:"turns"`
	// SystemPrompt is the beginning of the prompts; the zero value means none.
	SystemPrompt SystemPrompt `yaml:"system_prompt,omitempty" json:"system_prompt,omitzero"`
	// FirstPrompt and LaterUserTokens are the distributions of the user's text, in tokens.
	FirstPrompt     LengthsSpec `yaml:"first_prompt" json:"first_prompt"`
	LaterUserTokens LengthsSpec `yaml:"later_user_tokens" json:"later_user_tokens"`
	// EditedHistory is the probability that a later turn continues from an earlier point of the conversation,
	// uniform over the tokens after the system prompt. Everything after that point is dropped.
	EditedHistory float64 `yaml:"edited_history,omitempty" json:"edited_history,omitempty"`
	// Reasoning is the fraction of an output that is thinking, a mixture of Beta distributions; empty means none.
	// Later turns do not repeat the thinking. They cannot reuse the cached visible output either, because it
	// followed the thinking.
	Reasoning []BetaPart `yaml:"reasoning,omitempty" json:"reasoning,omitempty"`
	// ThinkTime is the time from the output to the next turn. TurnGap counts from the previous turn instead,
	// whether or not its output is complete. In a closed loop a turn waits for both the output and the gap. At most one
	// of them is set.
	ThinkTime Delay `yaml:"think_time,omitempty" json:"think_time,omitzero"`
	TurnGap   Delay `yaml:"turn_gap,omitempty" json:"turn_gap,omitzero"`
	// MaxContext limits a turn, prompt and output together, in tokens; 0 means the model's limit.
	MaxContext int32 `yaml:"max_context,omitempty" json:"max_context,omitempty"`
	// TooLong is the policy for a later turn above the limit: end (also when empty) ends the conversation before
	// it, truncate drops the oldest messages after the system prompt, and reject sends it, to be rejected or
	// truncated by the engine, and ends the conversation with it.
	TooLong string `yaml:"too_long,omitempty" json:"too_long,omitempty"`
	// Begin is steady (also when empty) to start an open loop with the active conversations of its steady state, or
	// empty.
	Begin string `yaml:"begin,omitempty" json:"begin,omitempty"`
}

// SystemPrompt is the beginning of the prompts of conversations. Each conversation belongs to one group; a group
// has its own text.
type SystemPrompt struct {
	// Tokens are the lengths of the groups' texts, in tokens; a single value applies to all groups.
	Tokens []int32 `yaml:"tokens,flow" json:"tokens"`
	// Groups is the number of groups; 0 means the length of Tokens or Weights, or 1.
	Groups int32 `yaml:"groups,omitempty" json:"groups,omitempty"`
	// Weights are the groups' shares of the conversations. Zipf gives group k the weight k^−Zipf instead. If
	// neither is set, all groups have the same share.
	Weights []float64 `yaml:"weights,omitempty,flow" json:"weights,omitempty"`
	Zipf    float64   `yaml:"zipf,omitempty" json:"zipf,omitempty"`
	// Share is the fraction of conversations that have a system prompt; 0 means all.
	Share float64 `yaml:"share,omitempty" json:"share,omitempty"`
}

// BetaPart is one Beta distribution in a mixture.
type BetaPart struct {
	Weight float64 `yaml:"weight" json:"weight"`
	Alpha  float64 `yaml:"alpha" json:"alpha"`
	Beta   float64 `yaml:"beta" json:"beta"`
}

// Policies for a turn that exceeds the longest context; see [SessionSpec.TooLong].
const (
	EndLong      = "end"
	TruncateLong = "truncate"
	RejectLong   = "reject"
)

// maxGroups limits the table of system prompts.
const maxGroups = 1 << 20

// build compiles the laws of conversations whose turns have at most most tokens, prompt and output together.
func (s SessionSpec) build(key string, closed bool, most int32, f *fieldFaults) *conversationLaws {
	law := func(name string, l LengthsSpec) Lengths {
		if l.Distribution == "" {
			f.add(key+"."+name, "is missing and the preset does not set it (want a distribution)")
			return nil
		}
		return l.build(key+"."+name, f)
	}
	t := &conversationLaws{
		turns: law("turns", s.Turns), first: law("first_prompt", s.FirstPrompt),
		later:  law("later_user_tokens", s.LaterUserTokens),
		edited: s.EditedHistory, reasoning: s.Reasoning, pause: s.ThinkTime, policy: s.TooLong, maxTokens: most,
	}
	t.system = s.SystemPrompt.build(key+".system_prompt", f)
	f.number(key+".edited_history", s.EditedHistory, s.EditedHistory >= 0 && s.EditedHistory <= 1, "0 to 1")
	for i, b := range s.Reasoning {
		k := fmt.Sprintf("%s.reasoning.%d", key, i)
		f.positive(k+".weight", b.Weight)
		f.number(k+".alpha", b.Alpha, b.Alpha > 0 && b.Alpha <= 1e6, "more than 0, at most 1e6")
		f.number(k+".beta", b.Beta, b.Beta > 0 && b.Beta <= 1e6, "more than 0, at most 1e6")
	}
	s.ThinkTime.check(key+".think_time", f)
	if s.TurnGap != (Delay{}) {
		s.TurnGap.check(key+".turn_gap", f)
		f.lasting(key+".turn_gap", s.TurnGap.Mean)
		t.pause, t.gap = s.TurnGap, true
		if s.ThinkTime != (Delay{}) {
			f.add(key+".turn_gap", "cannot be combined with think_time (want one: a gap counts from the previous "+
				"turn, a think time from its output)")
		}
	}
	if s.MaxContext < 0 || s.MaxContext == 1 || s.MaxContext > MaxTokens {
		f.add(key+".max_context", "%d is not allowed (want 2 to %d tokens)", s.MaxContext, MaxTokens)
	}
	if s.MaxContext > 0 && (t.maxTokens == 0 || s.MaxContext < t.maxTokens) {
		t.maxTokens = s.MaxContext
	}
	if t.maxTokens == 0 {
		t.maxTokens = MaxTokens
	}
	switch s.TooLong {
	case "", EndLong, TruncateLong, RejectLong:
	default:
		f.add(key+".too_long", "%q is not known (want end, truncate or reject)", s.TooLong)
	}
	switch s.Begin {
	case "", "steady", "empty":
		t.steady = !closed && s.Begin != "empty"
	default:
		f.add(key+".begin", "%q is not known (want steady or empty)", s.Begin)
	}
	return t
}

// systems are the compiled system prompts, by group.
type systems struct {
	tokens []int32
	upTo   []float64 // cumulative weights
	share  float64   // of the conversations that have a system prompt
}

func (s SystemPrompt) build(key string, f *fieldFaults) systems {
	if s.Tokens == nil {
		if s.Groups != 0 || s.Weights != nil || s.Zipf != 0 || s.Share != 0 {
			f.add(key+".tokens", "is missing (want the length of the system prompt)")
		}
		return systems{}
	}
	n := max(int(s.Groups), len(s.Weights), len(s.Tokens))
	switch {
	case s.Groups < 0 || s.Groups > maxGroups:
		f.add(key+".groups", "%d is not allowed (want 1 to %d)", s.Groups, maxGroups)
		return systems{}
	case s.Groups != 0 && len(s.Weights) > 0 && len(s.Weights) != int(s.Groups):
		f.add(key+".weights", "%d weights for %d groups (want one per group)", len(s.Weights), s.Groups)
	case len(s.Tokens) != 1 && len(s.Tokens) != n:
		f.add(key+".tokens", "%d lengths for %d groups (want one per group, or one for all)", len(s.Tokens), n)
	case s.Weights != nil && s.Zipf != 0:
		f.add(key+".zipf", "cannot be combined with weights (want one)")
	}
	f.number(key+".zipf", s.Zipf, s.Zipf >= 0 && s.Zipf <= 100, "0 to 100")
	f.number(key+".share", s.Share, s.Share >= 0 && s.Share <= 1, "more than 0, at most 1")
	for _, v := range s.Tokens {
		if v < 0 || v > MaxTokens {
			f.add(key+".tokens", "%d is not allowed (want 0 to %d)", v, MaxTokens)
		}
	}
	b := systems{share: s.Share}
	if b.share == 0 {
		b.share = 1
	}
	weights := s.Weights
	if weights == nil {
		for k := range n {
			weights = append(weights, math.Pow(float64(k+1), -s.Zipf))
		}
	}
	b.upTo = f.cumulated(key+".weights", weights)
	for k := range n {
		b.tokens = append(b.tokens, s.Tokens[min(k, len(s.Tokens)-1)])
	}
	return b
}

// cumulated returns the cumulative weights, scaled to end at 1.
func (f *fieldFaults) cumulated(key string, weights []float64) []float64 {
	var upTo []float64
	sum := 0.0
	for _, w := range weights {
		f.number(key, w, w >= 0 && w <= 1e12, "0 or more")
		sum += w
		upTo = append(upTo, sum)
	}
	if !(sum > 0) {
		f.add(key, "all weights are 0 (want more than 0 for at least one)")
	}
	for i := range upTo {
		upTo[i] /= sum
	}
	return upTo
}

// pick returns the first index whose cumulative share exceeds u in [0, 1), or the last one with a share.
func pick(upTo []float64, u float64) int {
	last := 0
	for i, x := range upTo {
		if u < x {
			return i
		}
		if i > 0 && x > upTo[i-1] {
			last = i
		}
	}
	return last
}

// SessionCounts counts the conversations of a source so far.
type SessionCounts struct {
	Begun    int64 `json:"begun"`     // conversations that sent a request, including those active at the start
	Turns    int64 `json:"turns"`     // requests sent
	TooLong  int64 `json:"too_long"`  // conversations that ended at the longest context
	Cut      int64 `json:"truncated"` // turns whose oldest messages were dropped
	Overlaps int64 `json:"overlapping_turns"`
	// GivenUp counts conversations that ended with an unanswered turn.
	GivenUp int64 `json:"given_up"`
}
