package scenario

import (
	"encoding/json"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/workload"
)

// Sessions makes requests turns of conversations: each repeats the prompt and the visible output before it, and adds
// what the user writes. Keys that are left out are the preset's, where it has conversations. The arrivals then start
// conversations, at a rate that gives the rate of requests asked for; the users of a closed loop hold one conversation
// after another.
type Sessions struct {
	// Turns is the law of the number of requests of a conversation.
	Turns *Distribution `json:"turns"`
	// SystemPrompt is what prompts begin with: a number of tokens, or groups of conversations with a text each.
	SystemPrompt *SystemPrompt `json:"system_prompt"`
	// FirstPrompt is the law of the first user message, in tokens.
	FirstPrompt *Distribution `json:"first_prompt"`
	// LaterUserTokens is the law of the user tokens in each later turn.
	LaterUserTokens *Distribution `json:"later_user_tokens"`
	// EditedHistory is the probability that a later turn follows on an earlier point of the conversation, so that the
	// cache is of no use behind it.
	EditedHistory *float64 `json:"edited_history" range:"[0,1]"`
	// Reasoning is the share of outputs that is thinking, which later turns do not repeat: a mixture of Beta laws. An
	// empty list is none.
	Reasoning []ReasoningShare `json:"reasoning"`
	// ThinkTime is how long after an output its user sends the next turn.
	ThinkTime *ThinkTime `json:"think_time"`
	// TurnGap counts from one turn to the next instead, finished or not. In a closed loop turns wait for the output
	// too.
	TurnGap *ThinkTime `json:"turn_gap"`
	// MaxContext is the longest turn, prompt and output, where that is less than max_model_len.
	MaxContext *int `json:"max_context" range:"[2,536870912]"`
	// TooLong says what becomes of a conversation that grows beyond it: it ends (the default), it loses its oldest
	// messages, or it sends what is refused or cut, and ends then.
	TooLong *string `json:"too_long" one:"end truncate reject"`
	// Begin says how an open loop begins: steady, the default, with conversations that are under way, or empty.
	Begin *string `json:"begin" one:"steady empty"`
}

func (s *Sessions) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if s.ThinkTime != nil && s.TurnGap != nil {
		d.Fault(n.Get("turn_gap").At, yamldoc.Join(key, "turn_gap"),
			"turn_gap and think_time are given together (want one: a gap counts from arrival to arrival, a think "+
				"time from the end of the output)", "")
	}
}

// ReasoningShare is a Beta law of the share of an output that is thinking.
type ReasoningShare struct {
	// Weight is the share of this law in the mixture.
	Weight float64 `json:"weight" range:"(0,)"`
	// Alpha and Beta are the parameters of the law, whose mean is alpha/(alpha + beta).
	Alpha float64 `json:"alpha" range:"(0,1000000]"`
	Beta  float64 `json:"beta" range:"(0,1000000]"`
}

func (r *ReasoningShare) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	d.Require(n, key, "", "weight", "alpha", "beta")
}

// SystemPrompt is what the prompts of conversations begin with.
type SystemPrompt struct {
	// Tokens is the length, or one for each group.
	Tokens Counts `json:"tokens"`
	// Groups is the number of groups of conversations, each with a text of its own.
	Groups *int `json:"groups,omitempty" range:"[1,1048576]"`
	// Weights are the groups' shares of the conversations; without them they are equal.
	Weights []float64 `json:"weights,omitempty" range:"[0,1000000000000]"`
	// Zipf gives the k-th group the weight k to the power of -zipf.
	Zipf *float64 `json:"zipf,omitempty" range:"[0,100]"`
	// Share is the part of the conversations that have a system prompt at all; null is all.
	Share *float64 `json:"share,omitempty" range:"(0,1]"`
}

// MarshalJSON writes the number of tokens alone where there is nothing else.
func (p SystemPrompt) MarshalJSON() ([]byte, error) {
	if len(p.Tokens) == 1 && p.Groups == nil && p.Weights == nil && p.Zipf == nil && p.Share == nil {
		return json.Marshal(p.Tokens[0])
	}
	type plain SystemPrompt
	return json.Marshal(plain(p))
}

func (p *SystemPrompt) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if n.Kind != yamldoc.Map {
		p.Tokens.Decode(d, n, key)
		return
	}
	type plain SystemPrompt
	var x plain
	d.Value(n, key, &x, "")
	d.Require(n, key, "want the length of the system prompt", "tokens")
	*p = SystemPrompt(x)
}

// Counts is a number of tokens, or a list of them.
type Counts []int

func (c *Counts) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	*c = oneOrMore[int](d, n, key, "a number of tokens", `range:"[0,536870912]"`)
}

// MarshalJSON writes the number, or the list.
func (c Counts) MarshalJSON() ([]byte, error) { return marshalOneOrMore(c) }

// Spec lays what is given over what the preset has, which may be nothing.
func (s *Sessions) spec(base *workload.SessionSpec) *workload.SessionSpec {
	var w workload.SessionSpec
	if base != nil {
		w = *base
	}
	for _, x := range []struct {
		from *Distribution
		to   *workload.LengthsSpec
	}{{s.Turns, &w.Turns}, {s.FirstPrompt, &w.FirstPrompt}, {s.LaterUserTokens, &w.LaterUserTokens}} {
		if x.from != nil {
			*x.to = x.from.lengths()
		}
	}
	if p := s.SystemPrompt; p != nil {
		w.SystemPrompt = workload.SystemPrompt{Groups: int32(optional.Value(p.Groups)), Weights: p.Weights,
			Zipf: optional.Value(p.Zipf), Share: optional.Value(p.Share)}
		for _, n := range p.Tokens {
			w.SystemPrompt.Tokens = append(w.SystemPrompt.Tokens, int32(n))
		}
	}
	optional.Set(&w.EditedHistory, s.EditedHistory)
	if s.Reasoning != nil {
		w.Reasoning = nil
		for _, r := range s.Reasoning {
			w.Reasoning = append(w.Reasoning, workload.BetaPart(r))
		}
	}
	if s.ThinkTime != nil || s.TurnGap != nil {
		w.ThinkTime, w.TurnGap = s.ThinkTime.delay(), s.TurnGap.delay()
	}
	if s.MaxContext != nil {
		w.MaxContext = int32(*s.MaxContext)
	}
	optional.Set(&w.TooLong, s.TooLong)
	optional.Set(&w.Begin, s.Begin)
	return &w
}
