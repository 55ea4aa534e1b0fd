package route

import "clifftop/workload"

var dummyRule = Rule{
	Name: "dummy-router",
	Does: "the replica of a given number",
	New:  func() Options { return new(Dummy) },
}

// Dummy sends all requests to one replica.
type Dummy struct {
	Replica int `json:"replica" range:"[0,64]" doc:"number of the replica"`
}

// Make implements [Options].
func (d *Dummy) Make(Identity) Router { made := *d; return &made }

// Route implements [Router].
func (d *Dummy) Route(v View, _ *workload.Request) int { return min(d.Replica, v.Len()-1) }
