package workload

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"clifftop/sim/clock"
)

type conversationLaws struct {
	turns, first, later Lengths
	system              systems
	edited              float64
	reasoning           []BetaPart
	pause               Delay
	gap                 bool   // pauses count from turn to turn, not from the output
	policy              string // for turns that exceed maxTokens
	maxTokens           int32  // of a turn, prompt and output together
	steady              bool   // start with active conversations
}

// class is one class of traffic: the distributions of its requests and, if they are turns of conversations, of
// those.
type class struct {
	bodies
	conversations *conversationLaws // nil for single requests
	class         uint16
	priority      int16
	domain        uint64 // separates its texts from those of other classes
	count         uint64 // arrivals so far in an open loop

	lengths, groups, edits, thinking, pauses, past *RNG
}

func newClass(b bodies, t *conversationLaws, seed uint64) class {
	b.inputs, b.outputs = NewRNG(seed, purposeInput), NewRNG(seed, purposeOutput)
	k := class{bodies: b, conversations: t}
	if t != nil {
		k.lengths, k.groups = NewRNG(seed, purposeTurns), NewRNG(seed, purposeGroup)
		k.edits, k.thinking, k.pauses = NewRNG(seed, purposeEdit), NewRNG(seed, purposeReasoning),
			NewRNG(seed, purposePause)
		k.past = NewRNG(seed, purposePast)
	}
	return k
}

// conversation is an active conversation, or a user of a closed loop between two of them. Its next turn is prepared
// in advance.
type conversation struct {
	class         int32
	number        int32  // of the session, from 1
	user          int32  // of a closed loop
	requests      int32  // sent by the user
	conversations uint32 // begun by the user
	entity        uint64 // position of its random draws
	turn          int32  // next turn, from 0
	turns         int32  // total
	sent          int32  // turns sent during the run
	inFlight      int32
	adapter       int32
	system        bool // history begins with a system prompt
	last          bool // the prepared turn is the last
	over          bool // no further turn
	at            clock.Time

	history       []Segment // prefix of the next prompt
	tokens        int32     // length of history
	input, output int32     // of the prepared turn, whose text is history
}

// Domains of the identities of conversation texts.
const (
	systemDomain   = 0x73797374
	userTextDomain = 0x75736572
	visibleDomain  = 0x76697369
	pastDomain     = 0x70617374
)

// begin starts a conversation with the random draws of an entity.
func (k *class) begin(v *conversation, entity uint64) {
	t := k.conversations
	v.entity, v.turn, v.sent, v.last, v.over = entity, 0, 0, false, false
	k.lengths.Seek(entity, 0)
	v.turns = t.turns.Sample(k.lengths)
	v.adapter = k.adapters.of(entity, 0)
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

// nextTurn prepares the next turn of v. It returns false if there is none.
func (k *class) nextTurn(v *conversation, counts *SessionCounts) bool {
	t := k.conversations
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
	if over := int64(v.tokens) + int64(said) + int64(v.output) - int64(t.maxTokens); over > 0 && v.turn > 0 {
		switch {
		case t.policy == TruncateLong && v.dropOldest(over):
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
	v.add(Segment{ID: Hash(userTextDomain, uint64(uint32(v.number))<<32|item), Tokens: said})
	v.input = v.tokens
	return true
}

// edit occasionally continues the conversation from an earlier point.
func (k *class) edit(v *conversation) {
	if k.conversations.edited == 0 {
		return
	}
	k.edits.Seek(v.entity, uint64(v.turn))
	if uniform(k.edits) >= k.conversations.edited {
		return
	}
	low := int32(0)
	if v.system {
		low = v.history[0].Tokens
	}
	v.truncate(low + int32(uniform(k.edits)*float64(v.tokens-low)))
}

// truncate cuts the history after the given number of tokens.
func (v *conversation) truncate(tokens int32) {
	var kept []Segment // segments of requests already sent must not change
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

// dropOldest removes the oldest messages until at least the given number of tokens is gone; it returns false if the
// history is too short.
func (v *conversation) dropOldest(tokens int64) bool {
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

func (v *conversation) add(s Segment) {
	v.history = append(v.history, s)
	v.tokens += s.Tokens
}

// addOutput appends the visible part of the output with the given identity, and moves on to the next turn.
func (k *class) addOutput(v *conversation, id uint64) {
	output := min(v.output, max(k.conversations.maxTokens-v.input, 1)) // the engine truncates longer outputs
	if hidden := k.thinkingTokens(v, output); hidden > 0 {
		id = Hash(visibleDomain, id) // without the thinking before it, its tokens have other positions
		output -= hidden
	}
	if output > 0 {
		v.add(Segment{ID: id, Tokens: output})
	}
	v.turn++
}

// thinkingTokens draws how many tokens of an output are thinking.
func (k *class) thinkingTokens(v *conversation, output int32) int32 {
	t := k.conversations
	if len(t.reasoning) == 0 {
		return 0
	}
	k.thinking.Seek(v.entity, uint64(v.turn))
	total := 0.0
	for _, b := range t.reasoning {
		total += b.Weight
	}
	u := uniform(k.thinking) * total
	part := t.reasoning[len(t.reasoning)-1]
	for _, b := range t.reasoning {
		if u < b.Weight {
			part = b
			break
		}
		u -= b.Weight
	}
	share := distuv.Beta{Alpha: part.Alpha, Beta: part.Beta, Src: k.thinking}.Rand()
	return min(int32(math.Round(share*float64(output))), output)
}

// wait draws the pause after a turn.
func (k *class) wait(v *conversation, turn int32) clock.Duration {
	k.pauses.Seek(v.entity, uint64(turn))
	return k.conversations.pause.Sample(k.pauses)
}

// conversationStats describes conversations, estimated by simulation.
type conversationStats struct {
	turns         float64        // mean
	turnSquares   float64        // mean of the squares
	input, output float64        // mean tokens of a turn
	horizon       clock.Duration // 99.9 % of the turns come within this time of the start of their conversation
}

// simulate plays sampleConversations conversations; fewer if they are long, but at least minSample.
const (
	sampleConversations = 4096
	sampleTurns         = 1 << 17
	minSample           = 16
)

// simulate plays conversations to estimate their means. The number of turns is the mean of the distribution times
// the fraction of turns that fit the longest context.
func (k *class) simulate() conversationStats {
	const domain = 0x73757276
	var s conversationStats
	var counts SessionCounts
	var offsets []clock.Duration
	asked, made, began := 0.0, 0.0, 0.0
	for i := range uint64(sampleConversations) {
		if made > sampleTurns && i >= minSample {
			break
		}
		var v conversation
		k.begin(&v, Hash(domain, i))
		asked += float64(v.turns)
		at, before := clock.Duration(0), made
		for k.nextTurn(&v, &counts) {
			made++
			s.input += float64(v.input)
			s.output += float64(v.output)
			offsets = append(offsets, at)
			k.addOutput(&v, 0)
			at = min(at+k.wait(&v, v.turn), clock.MaxRun)
		}
		began++
		s.turnSquares += (made - before) * (made - before)
	}
	s.turns = Mean(k.conversations.turns) * made / asked
	s.turnSquares /= began
	s.input /= made
	s.output /= made
	slices.Sort(offsets)
	s.horizon = offsets[len(offsets)*999/1000]
	return s
}
