// Package inspect describes the traffic of a trace: token lengths, arrivals, sessions, prefix sharing and classes.
//
// Start with [Trace], which reads a trace once and returns a [Result].
package inspect
