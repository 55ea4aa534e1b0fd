package engine

import (
	"testing"

	"pgregory.net/rapid"

	"clifftop/model"
	"clifftop/workload"
)

// TestSurelyFits: what is said of all prompts up to a length holds for each of them, with any output. Where the whole
// context has room in the pool, no longer prompt fits.
func TestSurelyFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, low, high int32) int32 { return rapid.Int32Range(low, high).Draw(t, name) }
		c := Config{MaxModelLen: draw("model", 2, 200), MaxPromptLen: draw("prompt", 0, 250),
			BlockSize: draw("block", 1, 20), NumGPUBlocks: int(draw("blocks", 2, 60)),
			AsyncScheduling: rapid.Bool().Draw(t, "async")}
		if rapid.Bool().Draw(t, "windowed") {
			c.Groups = model.KVGroups{{Kind: model.FullAttention, Layers: 4, TokenBytes: 8},
				{Kind: model.SlidingWindow, Layers: 4, Window: int(draw("window", 1, 60)), TokenBytes: 8}}
		}
		q := workload.Request{InputTokens: draw("input", 1, 250), OutputTokens: draw("output", 1, 250)}
		fits, room := !c.NeverFits(&q), c.PagesFor(c.MaxModelLen) <= c.UsableBlocks()
		if sure := q.InputTokens <= c.SurelyFits(); sure && !fits || room && sure != fits {
			t.Fatalf("%+v with %+v: it fits: %v, surely up to %d", q, c, fits, c.SurelyFits())
		}
	})
}
