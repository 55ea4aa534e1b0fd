package engine

import "planted/sim/kv"

// Engine and part hold each other: the only host is the engine.
type Engine struct {
	parts []part
	table map[string]*leaf
	cache kv.Cache
}

func (e *Engine) hosts() {}
