package sched

var dummyPolicyRule = Rule{
	Name:    "dummy-policy",
	Does:    "as orca",
	Section: "dummy",
	New:     func() Options { return new(DummyPolicy) },
}

// DummyPolicy schedules as Orca.
type DummyPolicy struct {
	Orca

	Seats int `json:"seats" range:"[0,4096]" doc:"an option"`
}
