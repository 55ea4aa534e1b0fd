package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// The format sglang-1: the scheduler of SGLang, managers/scheduler.py and schedule_policy.py, with the radix cache. An
// iteration takes 10 ms. A record ends after 1,200 iterations.

var sglangProfiles = []string{"base", "base16", "tbase", "tbase16", "noradix", "tnoradix16", "eos", "eos16", "teos",
	"lpm", "lpm16", "dfs", "lof", "prio", "preempt", "mixed", "mixed16", "ign", "async", "tasync", "eos_async",
	"noradix_async"}

const mostSGLangSteps = 1200

// sglangCase is an object of the file.
type sglangCase struct {
	Config   json.RawMessage
	Requests []sglangRequest
	Steps    []sglangStep
}

// sglangConfig are the settings of the engine: page_size, pages, max_running_requests, max_req_len,
// chunked_prefill_size,
// max_prefill_tokens, enable_mixed_chunk, schedule_conservativeness, schedule_policy, and others.
type sglangConfig struct {
	BS, Blocks, Seqs int
	MaxLen           int32 `json:"max_len"`
	Chunk            int32
	MaxPrefill       int32 `json:"max_prefill"`
	Mixed            bool
	Cons             float64
	Policy           string
	Radix            bool
	Prio, Preempt    bool
	Threshold        int32
	IgnoreEOS        bool  `json:"ignore_eos"`
	MaxTokens        int32 `json:"max_tokens"`
	Async            bool
}

type sglangRequest struct{ workload.Request }

// UnmarshalJSON reads an array: arrival in ms, prompt, output, priority, content and the name of the output.
func (q *sglangRequest) UnmarshalJSON(data []byte) error {
	var at float64
	var content segments
	var output string
	err := tuple(data, &at, &q.InputTokens, &q.OutputTokens, &q.Priority, &content, &output)
	if err != nil {
		return err
	}
	q.Arrival = clock.Time(millis(at))
	if q.Content, err = content.content(); err != nil {
		return err
	}
	return setOutput(&q.Request, output)
}

// sglangStep is an iteration: its mode, the rows, the retracted requests, and the available and evictable tokens after
// the allocation.
type sglangStep struct{ iteration }

func (s *sglangStep) UnmarshalJSON(data []byte) error {
	var mode string
	var rows []vllmRow
	var available int
	var at float64
	if err := tuple(data, &mode, &rows, &s.Preempted, &s.Free, &available, &at); err != nil {
		return err
	}
	s.At = clock.Time(millis(at))
	for _, r := range rows {
		s.Rows = append(s.Rows, r.row)
	}
	return nil
}

func readSGLang(data []byte, c *Case) error {
	var in sglangCase
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	var cfg sglangConfig
	if err := decode(in.Config, &cfg); err != nil {
		return err
	}
	if err := cfg.setup(c); err != nil {
		return err
	}
	for i := range in.Requests {
		c.requests = append(c.requests, in.Requests[i].Request)
	}
	for i := range in.Steps {
		it := in.Steps[i].iteration
		slices.SortFunc(it.Rows, byRequest)
		c.iterations = append(c.iterations, it)
	}
	c.cut, c.unordered = len(c.iterations) >= mostSGLangSteps, true
	c.compares = func(got, want *iteration) bool {
		got.Free *= cfg.BS
		return slices.EqualFunc(got.Rows, want.Rows, sameTokens) && slices.Equal(got.Preempted, want.Preempted) &&
			got.Free == want.Free && got.At == want.At
	}
	return nil
}

func byRequest(a, b row) int { return cmp.Compare(a.Request, b.Request) }

// sglangPolicies are the values of schedule_policy.
var sglangPolicies = map[string]sched.QueueOrder{
	"fcfs": sched.FirstCome, "lpm": sched.LongestPrefix, "dfs-weight": sched.DFSWeight,
	"lof": sched.LongestOutput,
}

func (v *sglangConfig) setup(c *Case) error {
	cfg := engine.Config{
		Timer: fixedTimer(stepTime), MaxNumSeqs: v.Seqs, MaxNumBatchedTokens: 1 << 20, MaxModelLen: v.MaxLen - 1,
		BlockSize: int32(v.BS), NumGPUBlocks: v.Blocks + 1, PrefixCaching: v.Radix, Radix: v.Radix,
		AsyncScheduling: v.Async, UnpredictedEnds: true, MaxTokens: v.MaxTokens,
	}
	order, ok := sglangPolicies[v.Policy]
	if !ok {
		return &unknownError{"policy", v.Policy}
	}
	policy := sched.SGLang{
		ChunkedPrefillSize: v.Chunk, MaxPrefillTokens: v.MaxPrefill, MixedChunk: v.Mixed, Conservativeness: v.Cons,
		QueueOrder: order, PreemptByPriority: v.Preempt, PreemptionThreshold: v.Threshold, IgnoreEOS: v.IgnoreEOS,
	}
	if v.Prio {
		cfg.Order = sched.ByPriority{}
	}
	c.engine = func() engine.Config {
		cfg, policy := cfg, policy
		cfg.Scheduler = &policy
		return cfg
	}
	if v.BS < 1 {
		return fmt.Errorf("bs is %d", v.BS)
	}
	return nil
}
