// Package model describes language models and accelerators, the memory that a deployment has for its KV cache, and
// the time of an iteration. It consists of data and pure functions; it does not know requests or simulated time.
//
// # Where to start
//
// An [LLM] has the dimensions of a model, a [GPU] the datasheet and kernel measurements of an accelerator. Both
// come from package catalog, from a user's GPU record (catalog.ReadGPU) or from a Hugging Face config.json
// ([ReadConfig]).
//
// [NewDeployment] combines the two with tensor, pipeline, data and expert parallelism and number formats, and
// rejects combinations that cannot work. The [Deployment] provides the weights per GPU, the KV bytes per token and,
// by [Deployment.KVBlocks], the number of blocks of the KV cache, or how much memory is missing.
//
// [Deployment.KVGroups] lists the KV cache groups: layers that keep the same tokens of a sequence. The size of a block
// and the charge of the engine's pool follow from the same list, so the groups are here and not in package sim/kv.
//
// A model is a list of layers by kind: [Mixer] is a set of layers with the same token mixer (attention with its window
// or indexer, or a recurrence). A new kind needs a [MixerKind] with its weights and its state or KV, its keys in the
// reader of config.json, a row of kernel constants (catalog/kernels/layers.yaml) and the time of its kernels.
//
// A step timer gives the time of an iteration for a [Batch], which aggregates one forward pass:
//
//   - [Kernels], the default, adds up matrix products, attention, experts, small kernels and communication with
//     constants measured per kernel. [Kernels.Explain] lists the terms.
//   - [Roofline] has four constants and needs only a datasheet.
//   - [Table] interpolates measured iterations.
//   - [Linear] is a + b·n, for comparison with queueing theory.
//
// [DivideStages] divides a step among pipeline stages: by layers, with the output head on the last stage.
//
// All timers can compute a sequence of iterations at once, see [StepTimer]. Step times are integers in femtoseconds.
// Floating point occurs only during construction and, with every product rounded, in tables; results are the same
// on all platforms.
//
// [Work] counts the FLOPs and bytes of a step, from which utilisation and a physical lower bound follow.
package model
