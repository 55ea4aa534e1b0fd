// Package playground is the simulator behind a page with sliders: one run, a curve load by load, a lesson. It works in
// a program without files and threads, such as WebAssembly in a browser. It simulates only with package experiments, so
// the numbers are the same as those of clifftop run for the file in [Point.YAML].
//
// A page keeps its settings as a [Query], which its address also contains.
package playground
