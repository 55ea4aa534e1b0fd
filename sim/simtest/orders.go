package simtest

import (
	"clifftop/sim/clock"
	"clifftop/sim/sched"
)

// Orders are the orders of the queue that scenario files and random cases know. Sizes have the knobs
// per-prompt (0), per-answer (1) and error (0, of the prediction), deadlines the knob due (by class; 1s), slack
// the knob per-unit (10ms), vtc the knobs clients (user, class, session), weigh-prompt and weigh-answer (0 and 0, which
// stand for 1 and 2). With age=10ms any of them but vtc is [sched.Aged].
func Orders() []string {
	return []string{"fcfs", "priority", "sjf", "ljf", "srpt", "edf", "slack", "vtc"}
}

// queueOrder is the order that the knobs ask for.
func queueOrder(k *Knobs) sched.Order {
	var order sched.Order
	switch name := Orders()[k.Choice("order", Orders()...)]; name {
	case "fcfs":
		return nil
	case "priority":
		order = sched.ByPriority{}
	case "sjf":
		order = sched.SJF{Size: size(k)}
	case "ljf":
		order = sched.LJF{Size: size(k)}
	case "srpt":
		order = sched.SRPT{Size: size(k)}
	case "edf":
		order = due(k)
	case "slack":
		order = sched.LeastSlack{EDF: due(k), Size: size(k), PerUnit: 10 * clock.Millisecond}
		if list := k.Durations("per-unit", clock.Nanosecond, 10*clock.Microsecond); len(list) > 0 {
			order = sched.LeastSlack{EDF: due(k), Size: size(k), PerUnit: list[0]}
		}
	case "vtc":
		return sched.VTC{
			Clients:   sched.Client(k.Choice("clients", "user", "class", "session")),
			PerPrompt: int64(k.Int("weigh-prompt", 0, 0, 5)), PerOutput: int64(k.Int("weigh-answer", 0, 0, 5)),
		}
	}
	if age := k.Durations("age", clock.Microsecond, 30*clock.Microsecond, clock.Millisecond); len(age) > 0 {
		order = sched.Aged{Order: order, Per: age[0]}
	}
	return order
}

func size(k *Knobs) sched.Size {
	return sched.Size{
		PerPrompt: int64(k.Int("per-prompt", 0, 0, 2)), PerOutput: int64(k.Int("per-answer", 1, 1, 3)),
		Error: k.Float("error", 0, .2, 1),
	}
}

func due(k *Knobs) sched.EDF {
	return sched.EDF{Within: k.Durations("due", 0, 20*clock.Microsecond, clock.Millisecond), Otherwise: clock.Second}
}
