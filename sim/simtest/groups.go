package simtest

import (
	"regexp"
	"strconv"

	"clifftop/model"
	"clifftop/sim/engine"
)

// groupWord is a KV cache group in a scenario file: its kind, and the window of kinds that have one.
var groupWord = regexp.MustCompile(`^(full|window|chunk|state|states)(\d*)$`)

// hybrid reads KV cache groups with blocks of the engine's size; nil if there are none.
func hybrid(args *arguments, cfg *engine.Config) *engine.Hybrid {
	h := &engine.Hybrid{Retention: args.int("retention", 0)}
	if args.flag("dense") {
		h.Retention = engine.DenseRetention
	}
	for _, text := range args.values("groups") {
		m := groupWord.FindStringSubmatch(text)
		if m == nil {
			args.fault("groups: %q is none of full, window64, chunk64, state and states", text)
			continue
		}
		g := model.CacheGroup{Layers: 1, BlockSize: int(cfg.BlockSize)}
		g.Window, _ = strconv.Atoi(m[2])
		switch m[1] {
		case "window":
			g.Kind = model.SlidingWindow
		case "chunk":
			g.Kind = model.ChunkedLocalAttention
		case "state":
			g.Kind, g.Mode = model.RecurrentState, model.AlignedState
		case "states":
			g.Kind, g.Mode = model.RecurrentState, model.AllStates
		}
		h.Groups = append(h.Groups, g)
	}
	if len(h.Groups) == 0 {
		return nil
	}
	if !cfg.PrefixCaching {
		h.SetRecurrentMode(model.LastState, int(cfg.MaxModelLen))
	}
	return h
}
