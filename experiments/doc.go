// Package experiments is how to ask: it reads scenarios, runs them, and sweeps a load from idle to
// beyond saturation.
package experiments
