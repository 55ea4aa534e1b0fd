package event

// Move is a transfer of KV blocks between the KV pool of a replica and a tier.
type Move struct {
	Replica, Tier int
	Stored        bool // to the tier; otherwise from it
	Blocks        int
	Bytes         int64
}
