// Package playground answers what a page with sliders asks of the simulator: one run, a curve load by load, a lesson. It is
// made for a program without files and threads, such as WebAssembly in a browser, and simulates by package experiments
// alone: what it shows of a scenario are the numbers that clifftop run gives of the file in [Point.YAML].
//
// A page keeps what it asks for as a [Query], which is also what its address holds.
package playground
