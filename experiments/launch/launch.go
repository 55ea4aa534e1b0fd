// Package launch describes how a deployment of serving engines is launched: which engine, with which flags, on how many
// GPUs of which kind, in which groups of replicas. Package manifest reads launch lines and manifests into a [System],
// and [System.Scenario] translates a System into a scenario.
//
//	shell script, Dockerfile, compose, Kubernetes, Helm values → manifest.Read → System → scenario
//
// Package flags knows the flags of each engine and release.
package launch

import "clifftop/experiments/scenario/yamldoc"

// System is a deployment: groups of equal replicas, and their router.
type System struct {
	// Name of the deployment in its file; may be empty.
	Name string
	// Stack is the software that runs the engines: "" for none, or dynamo, llm-d, production-stack, kserve.
	Stack string
	// Groups are the groups of replicas in the order of the file. Groups with the roles prefill and decode work
	// together.
	Groups []Group
	// Router distributes requests; nil is none, or not known.
	Router *Router
	// Notes are remarks of the reader that concern no flag.
	Notes []Note

	faultedGPU bool // a missing GPU was reported
}

// Group is a number of equal replicas.
type Group struct {
	Name     string
	Role     string // prefill or decode; "" follows the flags, and both is both phases with any flags
	Replicas int    // of the engine; 1 if the file does not say
	// Nodes is the number of machines of one replica, as of a LeaderWorkerSet; at least 1.
	Nodes int
	// GPUsPerNode is the number of GPUs that a pod or a container asks for; 0 is not known.
	GPUsPerNode int
	// Accelerator is the kind of GPU as written in the file: a node label, a type of instance; empty is not known.
	Accelerator string
	// AcceleratorAt is where it stands.
	AcceleratorAt yamldoc.Place
	// Min and Max are the bounds of an autoscaler; 0 is none.
	Min, Max int
	// Scaler is the autoscaler; nil is none.
	Scaler *Scaler
	// At is where the group stands.
	At yamldoc.Place
	// Line launches the engine.
	Line Line
}

// Scaler is an autoscaler of a group.
type Scaler struct {
	// Policy is the rule of a scenario's lifecycle.autoscale that fits: hpa, keda or knative.
	Policy string
	// Metric is the metric as the file has it: a name, or a query of Prometheus.
	Metric string
	// Target is the target of the metric per replica; 0 if there is none that a scenario can express.
	Target float64
	// Options are further keys of lifecycle.autoscale.
	Options []Flag
	// At is where the metric stands.
	At yamldoc.Place
}

// Line is the command that launches an engine.
type Line struct {
	// Engine is vllm, sglang or trtllm.
	Engine string
	// Stack is dynamo where dynamo's worker wraps the engine, else empty.
	Stack string
	// Table is the name of the table of its flags in package flags, such as dynamo-vllm.
	Table string
	// Release is the version of the engine without its name, such as 0.13.0, from the image or a package; may be
	// empty.
	Release string
	// Image is the container image; may be empty.
	Image string
	// Model is the model as written: a name on Hugging Face, or a path.
	Model string
	// ModelAt is where the model stands.
	ModelAt yamldoc.Place
	// Flags are the flags in their order, with those of configuration files in the place of the flag that names the
	// file.
	Flags []Flag
	// Env are the environment variables of the process.
	Env []Flag
	// GPUs is the number of GPUs of its container; 0 is not known.
	GPUs int
	// At is where the command begins.
	At yamldoc.Place
}

// Flag is a flag of a command, a key of its configuration file, or an environment variable.
type Flag struct {
	// Name is as written, without leading dashes. Keys of a configuration file are joined by dots.
	Name string
	// Value is the value; empty if Bare.
	Value string
	// Bare means that no value is given, as with switches.
	Bare bool
	// File means that the flag is a key of a configuration file, and Env that it is an environment variable.
	File, Env bool
	// Dash means that it has one leading dash, as in -tp 8.
	Dash bool
	// At is where it stands.
	At yamldoc.Place
}

// Router distributes requests over the replicas.
type Router struct {
	// Kind is the program: vllm-router, sglang-router, dynamo-frontend, llm-d-epp …
	Kind string
	// Flags are its flags, and its environment variables that are known. Those of llm-d-epp are the types of its
	// plugins with their weights, after "decode." for those of the profile of that name.
	Flags []Flag
	At    yamldoc.Place
}

// Note is a remark on the way in or out: what was read, assumed or left out.
type Note struct {
	At   yamldoc.Place
	Text string
}
