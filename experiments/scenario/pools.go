package scenario

import (
	"encoding/json"
	"fmt"

	"clifftop/experiments/scenario/yamldoc"
)

// Pool is a group of like replicas of a fleet. What it does not say is that of the scenario, key by key.
type Pool struct {
	// Name is the name in results; the default is the number of the pool, from 1.
	Name string `json:"name"`
	// Role is the work of the pool: both, prefill to compute prompts, or decode to generate output.
	Role string `json:"role" one:"both prefill decode"`
	// Replicas is the number of its members.
	Replicas int `json:"replicas" range:"[1,4096]"`
	// Model is the model that the replicas serve.
	Model *string `json:"model"`
	// GPU is the GPU that they use.
	GPU *string `json:"gpu"`
	// Deployment places the model on the GPUs of one replica; replicas and router are not allowed here.
	Deployment *Deployment `json:"deployment"`
	// Engine holds the parameters that differ.
	Engine *Engine `json:"engine"`
	// Overheads are the delays that differ; those of the network cannot.
	Overheads *Overheads `json:"overheads"`
	// StepTime is the model of an iteration's length.
	StepTime *StepTime `json:"step_time"`
	// Cost holds the prices that differ.
	Cost *Cost `json:"cost"`

	origin *origin // where the keys of its scenario stand
}

// maxReplicas is the most that a pool, or all of them, have.
const maxReplicas = 4096

// poolKeys is Pool without a syntax of its own.
type poolKeys Pool

func (p *Pool) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	*p = Pool{Role: "both", Replicas: 1}
	d.Value(n, key, (*poolKeys)(p), "")
	if own := n.Get("deployment"); own != nil {
		for _, f := range own.Fields {
			if f.Name == "replicas" || f.Name == "router" {
				want := yamldoc.Join(key, "replicas")
				if f.Name == "router" {
					want = "deployment.router: one routes to all pools"
				}
				d.Fault(f.At, yamldoc.Join(yamldoc.Join(key, "deployment"), f.Name),
					fmt.Sprintf("this key is not allowed in a pool (want %s)", want), "")
			}
		}
	}
}

// MarshalJSON leaves out of the deployment what belongs to the whole fleet.
func (p Pool) MarshalJSON() ([]byte, error) {
	type layout struct {
		*Deployment
		Replicas any `json:"replicas,omitempty"`
		Router   any `json:"router,omitempty"`
	}
	keys := poolKeys(p)
	keys.Deployment = nil
	return json.Marshal(struct {
		poolKeys
		Deployment *layout `json:"deployment"`
	}{keys, &layout{Deployment: p.Deployment}})
}
