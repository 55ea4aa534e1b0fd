package sched

// Victim is a rule that picks the running sequence to preempt. But for the first, a rule looks at every running
// sequence; of equals it takes the one that was admitted last.
type Victim uint8

// The rules. None of them takes from a sequence the place that it gained by its own prefill: if it did, two sequences
// that do not fit into the pool together could take turns endlessly.
const (
	LastAdmitted  Victim = iota // the tail of the running batch
	LeastUrgent                 // the last in the order of the queue
	MostRemaining               // the one with the most output tokens left, as far as its client has declared
	LeastProgress               // the one with the fewest output tokens
	Longest                     // the one with the most known tokens, which frees the most blocks
)

// Victims lists the rules.
func Victims() []Victim {
	return []Victim{LastAdmitted, LeastUrgent, MostRemaining, LeastProgress, Longest}
}

func (rule Victim) String() string {
	return [...]string{"last-admitted", "least-urgent", "most-remaining", "least-progress", "longest"}[rule]
}

// Of returns the sequence that the rule picks from the running batch of v, which is not empty.
func (rule Victim) Of(v View) Seq {
	victim := v.Last()
	if rule == LastAdmitted {
		return victim
	}
	for s := v.Prev(victim); s != None; s = v.Prev(s) {
		if rule.prefers(v, s, victim) {
			victim = s
		}
	}
	return victim
}

// prefers reports whether s has to go before t does.
func (rule Victim) prefers(v View, s, t Seq) bool {
	if rule == LeastUrgent {
		return v.Urgency(t).Less(v.Urgency(s))
	}
	p, q := v.Progress(s), v.Progress(t)
	switch rule {
	case MostRemaining:
		return p.MaxTokens-p.Generated > q.MaxTokens-q.Generated
	case LeastProgress:
		return p.Generated < q.Generated
	}
	return p.Prompt+p.Generated > q.Prompt+q.Generated
}
