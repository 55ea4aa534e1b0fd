// Package model says what is served and on what: language models, accelerators, the memory that a
// deployment has for its KV cache, and how long an iteration takes. It is data and pure functions:
// nothing here knows of requests or of time passing.
//
// # A short tour
//
// An [LLM] is a model's dimensions and a [GPU] an accelerator's datasheet and kernel measurements.
// Both come from the package catalog, from a user's GPU record (catalog.ReadGPU) or from a Hugging
// Face config.json ([ReadConfig]).
//
// [NewDeployment] puts the one on the other, with tensor, pipeline, data and expert parallelism and
// number formats, and refuses what cannot work. The [Deployment] knows its weights per GPU, its KV
// bytes per token, and with [Deployment.KVBlocks] how many blocks an engine's KV pool gets, or by
// how much the model does not fit.
//
// A step timer gives the length of iterations for a [Batch], the aggregate of one forward pass:
//
//   - [Kernels], the default, adds up matrix products, attention, experts, small kernels and
//     communication with constants measured on kernels. [Kernels.Explain] takes a step apart.
//   - [Roofline] has four constants and needs a datasheet only.
//   - [Table] interpolates measured iterations.
//   - [Linear] is a + b·n, for comparison with theory.
//
// [DivideStages] divides a step among the stages of a pipeline: by layers, with the output head on the last one.
//
// All of them answer for runs of iterations at once: [StepTimer]. Step times are integers, and
// floating point occurs only while a timer is constructed, and in tables with every product rounded, so that results
// are the same everywhere.
//
// [Work] is what a step must do whatever the timer says: FLOPs and bytes, from which utilisation and
// a physical lower bound follow.
package model
