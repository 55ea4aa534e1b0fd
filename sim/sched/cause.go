package sched

// Cause is the reason why the head of the waiting queue is not admitted.
type Cause uint8

// The causes, and [NotBlocked] for none.
const (
	NotBlocked     Cause = iota
	LacksKV              // the KV pool has too few free blocks
	LacksBudget          // the iteration's token budget is used up
	LacksSeats           // the running batch is full (max_num_seqs)
	HeldByPolicy         // the policy holds it back: a preemption in this step, another phase, an order, its adapter
	NumberOfCauses       // not a cause; for arrays indexed by cause
)

// String returns the cause as it stands in results.
func (c Cause) String() string {
	return [...]string{"none", "kv", "token_budget", "seats", "policy", "?"}[c]
}
