// Package scenario reads scenario files and makes them ready to run.
//
// [Load] and [Parse] decode YAML over the defaults into a [Scenario]: one struct for each section of the file, in a
// file of that name. [Scenario.Resolve] looks up the model and the GPU, sizes the KV cache, fills in what is left
// open and gives a [Setup], which a run takes. All faults of a file are reported together, each with its place.
package scenario
