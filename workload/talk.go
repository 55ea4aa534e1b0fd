package workload

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"clifftop/sim/clock"
)

// talk are the laws of conversations.
type talk struct {
	turns, first, later Lengths
	system              systems
	edited              float64
	reasoning           []BetaPart
	pause               Delay
	gap                 bool // pauses count from turn to turn, not from the answer
	policy              string
	most                int32 // tokens of a turn, prompt and answer
	steady              bool  // begins with conversations under way
}

// kind is one sort of traffic: the bodies of its requests and, where they are turns of conversations, the
// laws of these.
type kind struct {
	bodies
	talk     *talk // nil for single requests
	class    uint16
	priority int16
	domain   uint64 // of its texts
	count    uint64 // starts in an open loop

	lengths, groups, edits, thoughts, pauses *Stream
}

func newKind(b bodies, t *talk, seed uint64) kind {
	b.inputs, b.outputs = NewStream(seed, purposeInput), NewStream(seed, purposeOutput)
	k := kind{bodies: b, talk: t}
	if t != nil {
		k.lengths, k.groups = NewStream(seed, purposeTurns), NewStream(seed, purposeGroup)
		k.edits, k.thoughts, k.pauses = NewStream(seed, purposeEdit), NewStream(seed, purposeReasoning), NewStream(seed, purposePause)
	}
	return k
}

// visit is a conversation, or in a closed loop a user between two of them. Its next turn is composed ahead.
type visit struct {
	kind     int32
	number   int32  // of the session, from 1
	user     int32  // of a closed loop
	requests int32  // that the user sent
	talks    uint32 // conversations that the user has begun
	entity   uint64 // of the draws
	turn     int32  // next, from 0
	turns    int32  // in all
	sent     int32  // in the run
	inFlight int32
	system   bool // history begins with a system prompt
	last     bool // the turn to come is the last
	over     bool // no turn is to come
	at       clock.Time

	history       []Segment // what the next prompt repeats
	tokens        int32     // of it
	input, output int32     // of the next turn, whose text is history
}

// Domains of the identities of what conversations say.
const (
	systemDomain  = 0x73797374
	saidDomain    = 0x75736572
	visibleDomain = 0x76697369
	pastDomain    = 0x70617374
)

// begin starts a conversation whose draws are those of an entity.
func (k *kind) begin(v *visit, entity uint64) {
	t := k.talk
	v.entity, v.turn, v.sent, v.last, v.over = entity, 0, 0, false, false
	k.lengths.Seek(entity, 0)
	v.turns = t.turns.Sample(k.lengths)
	v.history, v.tokens, v.system = make([]Segment, 0, min(2*v.turns+1, 16)), 0, false
	if len(t.system.tokens) == 0 {
		return
	}
	k.groups.Seek(entity, 0)
	u, share := uniform(k.groups), uniform(k.groups)
	g := pick(t.system.upTo, u)
	if n := t.system.tokens[g]; n > 0 && share < t.system.share {
		id := Hash(systemDomain^k.domain, uint64(g))
		v.add(Segment{ID: id, Tokens: n})
		v.system = true
	}
}

// compose makes the next turn of v, whose conversation has the given number. It reports false where there is none.
func (k *kind) compose(v *visit, counts *SessionCounts) bool {
	t := k.talk
	if v.turn == v.turns || v.last {
		v.over = true
		return false
	}
	law := t.first
	if v.turn > 0 {
		law = t.later
		k.edit(v)
	}
	item := uint64(v.turn)
	k.inputs.Seek(v.entity, item)
	said := law.Sample(k.inputs)
	k.outputs.Seek(v.entity, item)
	v.output = k.answer(int64(v.tokens) + int64(said))
	if over := int64(v.tokens) + int64(said) + int64(v.output) - int64(t.most); over > 0 && v.turn > 0 {
		switch {
		case t.policy == TruncateLong && v.drop(over):
			counts.Cut++
		case t.policy == RejectLong && int64(v.tokens)+int64(said) <= MaxTokens:
			counts.TooLong++
			v.last = true
		default:
			counts.TooLong++
			v.over = true
			return false
		}
	}
	v.add(Segment{ID: Hash(saidDomain, uint64(uint32(v.number))<<32|item), Tokens: said})
	v.input = v.tokens
	return true
}

// edit lets the conversation go on from an earlier point, now and then.
func (k *kind) edit(v *visit) {
	if k.talk.edited == 0 {
		return
	}
	k.edits.Seek(v.entity, uint64(v.turn))
	if uniform(k.edits) >= k.talk.edited {
		return
	}
	low := int32(0)
	if v.system {
		low = v.history[0].Tokens
	}
	v.keep(low + int32(uniform(k.edits)*float64(v.tokens-low)))
}

// keep cuts the history after so many tokens.
func (v *visit) keep(tokens int32) {
	var kept []Segment // what was sent stays as it is
	v.tokens = tokens
	for _, s := range v.history {
		if tokens == 0 {
			break
		}
		s.Tokens = min(s.Tokens, tokens)
		tokens -= s.Tokens
		kept = append(kept, s)
	}
	v.history = kept
}

// drop takes the oldest messages out of the history until so many tokens are gone, and reports whether there
// were as many.
func (v *visit) drop(tokens int64) bool {
	from := 0
	if v.system {
		from = 1
	}
	to := from
	for ; tokens > 0 && to < len(v.history); to++ {
		tokens -= int64(v.history[to].Tokens)
	}
	if tokens > 0 {
		return false
	}
	for _, s := range v.history[from:to] {
		v.tokens -= s.Tokens
	}
	v.history = slices.Concat(v.history[:from], v.history[to:])
	return true
}

func (v *visit) add(s Segment) {
	v.history = append(v.history, s)
	v.tokens += s.Tokens
}

// answered adds the visible part of the answer to the turn just composed, whose identity is id, and goes on to the next.
func (k *kind) answered(v *visit, id uint64) {
	output := min(v.output, max(k.talk.most-v.input, 1)) // what is longer is cut by the engine
	if hidden := k.hidden(v, output); hidden > 0 {
		id = Hash(visibleDomain, id) // behind the thinking it stood elsewhere
		output -= hidden
	}
	if output > 0 {
		v.add(Segment{ID: id, Tokens: output})
	}
	v.turn++
}

// hidden is how much of an answer is thinking.
func (k *kind) hidden(v *visit, output int32) int32 {
	t := k.talk
	if len(t.reasoning) == 0 {
		return 0
	}
	k.thoughts.Seek(v.entity, uint64(v.turn))
	total := 0.0
	for _, b := range t.reasoning {
		total += b.Weight
	}
	u := uniform(k.thoughts) * total
	part := t.reasoning[len(t.reasoning)-1]
	for _, b := range t.reasoning {
		if u < b.Weight {
			part = b
			break
		}
		u -= b.Weight
	}
	share := distuv.Beta{Alpha: part.Alpha, Beta: part.Beta, Src: k.thoughts}.Rand()
	return min(int32(math.Round(share*float64(output))), output)
}

// wait is the pause after turn number turn of v.
func (k *kind) wait(v *visit, turn int32) clock.Duration {
	k.pauses.Seek(v.entity, uint64(turn))
	return k.talk.pause.Sample(k.pauses)
}

// survey is what conversations come to, by playing some.
type survey struct {
	turns         float64        // mean
	input, output float64        // mean tokens of a turn
	horizon       clock.Duration // all but 1 in 1,000 turns come within it from the beginning of their conversation
}

// A survey plays so many conversations, and fewer where they are long.
const (
	surveyed      = 4096
	surveyedTurns = 1 << 17
	surveyedLeast = 16
)

// survey plays conversations. Turns beyond the longest context, which are not sent, are taken from the mean of the law.
func (k *kind) survey() survey {
	const domain = 0x73757276
	var s survey
	var counts SessionCounts
	var offsets []clock.Duration
	asked, made := 0.0, 0.0
	for i := range uint64(surveyed) {
		if made > surveyedTurns && i >= surveyedLeast {
			break
		}
		var v visit
		k.begin(&v, Hash(domain, i))
		asked += float64(v.turns)
		at := clock.Duration(0)
		for k.compose(&v, &counts) {
			made++
			s.input += float64(v.input)
			s.output += float64(v.output)
			offsets = append(offsets, at)
			k.answered(&v, 0)
			at = min(at+k.wait(&v, v.turn), clock.MaxRun)
		}
	}
	s.turns = Mean(k.talk.turns) * made / asked
	s.input /= made
	s.output /= made
	slices.Sort(offsets)
	s.horizon = offsets[len(offsets)*999/1000]
	return s
}
