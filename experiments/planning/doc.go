// Package planning finds the cheapest deployments for a traffic and an SLO: which GPUs, how many, and in which layout.
//
// A candidate is one replica: a model on GPUs, with knobs of the engine. Replicas are identical copies, and each gets
// an equal share of the traffic. The planner lists all candidates, drops what does not fit, drops by closed-form bounds
// what cannot meet the SLO or cannot be cheap, and simulates the rest, the likely ones first: for each it looks for the
// least number of replicas that meets the SLO at the load of the busiest hour, divided by one less the validated error
// of the step model.
//
//	plan, err := planning.New(ctx, scenario, planning.Options{})
package planning
