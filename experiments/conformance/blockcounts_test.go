package conformance_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"clifftop/experiments/conformance"
	"clifftop/internal/testenv"
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

// blockCount is what a lone request holds after an iteration of vLLM.
type blockCount struct {
	iteration                   int
	scheduled, computed, blocks int
}

// loneRequest is a request that vLLM served alone.
type loneRequest struct {
	name   string
	cfg    engine.Config
	input  workload.Request
	counts []blockCount
}

var groupForm = regexp.MustCompile(`^(full|sliding|chunked|mamba)(\d*)x(\d+)$`)

var groupKinds = map[string]model.KVKind{"full": model.FullAttention, "sliding": model.SlidingWindow,
	"chunked": model.ChunkedLocalAttention, "mamba": model.RecurrentState}

// loneRequests reads the requests of the reference data.
func loneRequests(t *testing.T) (list []*loneRequest) {
	t.Helper()
	f, err := os.Open(testenv.Reference(t, "schedules", "blockcounts.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		number := func(i int) int {
			n, err := strconv.Atoi(row[i])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if row[8] == "end" {
			continue
		}
		if number(8) == 1 {
			q := &loneRequest{name: fmt.Sprintf("%s, prompt %s, budget %s, caching %s, async %s", row[0], row[4], row[3],
				row[6], row[7])}
			q.input = workload.Request{InputTokens: int32(number(4)), OutputTokens: int32(number(5))}
			q.cfg = engine.Config{Scheduler: &sched.VLLM{}, Timer: oneStep{}, MaxNumSeqs: 8,
				MaxNumBatchedTokens: number(3), MaxModelLen: 32768, BlockSize: int32(number(2)), NumGPUBlocks: 100_001,
				PrefixCaching: row[6] == "1", AsyncScheduling: row[7] == "1", Hybrid: hybridOf(t, row)}
			list = append(list, q)
		}
		q := list[len(list)-1]
		q.counts = append(q.counts, blockCount{number(8), number(9), number(10), number(12)})
		sum := 0
		for _, group := range strings.Split(row[11], "+") {
			n, _ := strconv.Atoi(group)
			sum += n
		}
		if sum != number(12) {
			t.Fatalf("%s: the groups hold %d of %s blocks", q.name, sum, row[12])
		}
	}
	return list
}

// hybridOf reads the KV cache groups of a row. In the configuration pages, windowed layers have smaller pages.
func hybridOf(t *testing.T, row []string) *engine.Hybrid {
	t.Helper()
	h := new(engine.Hybrid)
	size, _ := strconv.Atoi(row[2])
	for _, word := range strings.Split(row[1], "+") {
		m := groupForm.FindStringSubmatch(word)
		if m == nil {
			t.Fatalf("group %q", word)
		}
		g := model.CacheGroup{Kind: groupKinds[m[1]], BlockSize: size}
		g.Window, _ = strconv.Atoi(m[2])
		g.Layers, _ = strconv.Atoi(m[3])
		if row[0] == "pages" && g.Kind == model.SlidingWindow {
			g.BlockSize *= 2
		}
		h.Groups = append(h.Groups, g)
	}
	switch {
	case row[6] != "1":
		h.SetRecurrentMode(model.LastState, 32768)
	case row[0] == "nemotronh":
		h.SetRecurrentMode(model.AllStates, 0)
	default:
		h.SetRecurrentMode(model.AlignedState, 0)
	}
	return h
}

// oneStep makes every iteration equally long.
type oneStep struct{}

func (oneStep) Span(*model.Batch) (first, slope int64, n int) {
	return int64(clock.Millisecond) * clock.FemtosPerPico, 0, 1
}

// blockObserver compares the blocks in use with those that vLLM counted.
type blockObserver struct {
	event.Ignore
	t    *testing.T
	q    *loneRequest
	step int
}

func (o *blockObserver) Step(s *event.Step) {
	o.step++
	if len(o.q.counts) == 0 || o.q.counts[0].iteration != o.step {
		return
	}
	want := o.q.counts[0]
	o.q.counts = o.q.counts[1:]
	tokens, blocks := int(s.Scheduled[0].Tokens), o.q.cfg.UsableBlocks()-s.FreeBlocks
	if tokens != want.scheduled || blocks != want.blocks {
		o.t.Errorf("%s: iteration %d has %d tokens and %d blocks (want %d and %d)", o.q.name, o.step, tokens, blocks,
			want.scheduled, want.blocks)
	}
}

// TestBlockCounts compares the blocks that lone requests hold in all KV cache groups with those of vLLM.
func TestBlockCounts(t *testing.T) {
	for name, run := range map[string]conformance.Simulator{
		"engine": conformance.Simulate,
		"naive": func(_ context.Context, cfg engine.Config, src workload.Source, obs event.Observer) error {
			return naive.Run(cfg, src, obs)
		},
	} {
		list := loneRequests(t)
		if len(list) != 32 {
			t.Fatalf("%d requests (want 32)", len(list))
		}
		for _, q := range list {
			o := &blockObserver{t: t, q: q}
			if err := run(context.Background(), q.cfg, &lone{request: &q.input}, o); err != nil {
				t.Fatal(err)
			}
			if len(q.counts) > 0 {
				t.Errorf("%s, %s: it ends before iteration %d", name, q.name, q.counts[0].iteration)
			}
		}
	}
}

// lone sends one request.
type lone struct{ request *workload.Request }

func (s *lone) Peek() (at clock.Time, ok bool) {
	if s.request == nil {
		return clock.Never, false
	}
	return 0, true
}

func (s *lone) Next() workload.Request {
	r := *s.request
	s.request = nil
	return r
}

func (s *lone) Done(*workload.Request, workload.End) bool { return false }
func (s *lone) Err() error                                { return nil }
