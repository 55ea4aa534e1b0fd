package sched

var dummyOrderRule = OrderRule{
	Name: "dummy-order",
	Does: "last come, first served",
	New:  func() OrderOptions { return &DummyOrder{Weight: 1} },
}

// DummyOrder serves the last request first.
type DummyOrder struct {
	Weight int64 `json:"weight" range:"[1,9]" doc:"factor of the arrival"`
}

// Make implements [OrderOptions].
func (d *DummyOrder) Make(uint64) Order { return *d }

// Key implements [Order].
func (d DummyOrder) Key(w *Waiting) int64 { return -d.Weight * (w.Urgency.Arrival >> 4) }
