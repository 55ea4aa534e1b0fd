package conformance

import (
	"encoding/json"
	"fmt"
	"slices"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// The format vllm-1: the scheduler of vLLM, v1/core/sched/scheduler.py, with the KV cache manager. An iteration takes
// 10
// ms. With pipeline parallelism a stage takes that long, and as many iterations as there are stages are in flight.

var vllmProfiles = []string{"base", "async", "wm", "eos", "abort", "abortasync", "asynceos", "speceagle", "specngram",
	"specdraft", "pp", "asyncdrafts", "hybrid", "hybridreal", "hybriddrafts", "lora"}

// vllmCase is an object of the file.
type vllmCase struct {
	Config   json.RawMessage
	Requests []vllmRequest
	Steps    []vllmStep
}

// vllmRequest is a request. Times are in milliseconds; Leave is how long after At the client leaves.
type vllmRequest struct {
	At, Leave   float64
	Prompt, Out int32
	Prio        int16
	Content     segments
	Ans         string
	Lora        int32
}

// vllmConfig are the settings of the engine: block_size, num_gpu_blocks with the null block, max_num_batched_tokens,
// max_num_seqs, max_model_len, and others that are named as in vLLM.
type vllmConfig struct {
	BS, Blocks, Budget, Seqs int
	MaxLen                   int32 `json:"max_len"`
	Caching, Chunked         bool
	Threshold                int32
	Policy                   string
	Reserve                  bool
	Watermark                float64
	Async                    bool
	PP                       int
	MaxTokens                int32 `json:"max_tokens"`
	MaxLoRAs                 int   `json:"max_loras"`
	Spec                     *vllmDrafts
	vllmHybrid
}

// vllmHybrid is KV cache groups: the layers of the model and the memory of the pool, which determine the groups and the
// number of blocks, and vLLM's scheduler_block_size, prefix_cache_retention_interval and mamba_cache_mode.
type vllmHybrid struct {
	Model       string
	Layers      []vllmLayers
	Memory      int64
	Groups      []vllmLayers
	SchedulerBS int    `json:"scheduler_bs"`
	HashBS      int    `json:"hash_bs"`
	Retention   *int   // null is dense
	MambaMode   string `json:"mamba_mode"`
}

// vllmLayers is layers of a kind, or a group of them.
type vllmLayers struct {
	Kind                      string
	Layers, Heads, Window, BS int
	Mode                      string
}

var vllmKinds = map[string]model.KVKind{"full": model.FullAttention, "sliding": model.SlidingWindow,
	"chunked": model.ChunkedLocalAttention, "mamba": model.RecurrentState}

var mambaModes = map[string]model.RecurrentMode{"": 0, "none": model.LastState, "align": model.AlignedState,
	"all": model.AllStates}

// hybrid makes the KV cache groups of the layers, and compares them and the pool with those of the record.
func (v *vllmConfig) hybrid() (*engine.Hybrid, error) {
	var kinds model.KVGroups
	for _, l := range v.Layers {
		kind, ok := vllmKinds[l.Kind]
		if !ok {
			return nil, &unknownError{"layers: kind", l.Kind}
		}
		kinds = append(kinds, model.KVGroup{Kind: kind, Layers: l.Layers, Window: l.Window,
			TokenBytes: int64(l.Heads) * 32})
	}
	mode, ok := mambaModes[v.MambaMode]
	if !ok {
		return nil, &unknownError{"mamba_mode", v.MambaMode}
	}
	groups, err := model.GroupLayers(kinds, v.BS)
	if err != nil {
		return nil, err
	}
	h := &engine.Hybrid{CacheGroups: groups, Retention: engine.DenseRetention}
	if v.Retention != nil {
		h.Retention = *v.Retention
	}
	h.SetRecurrentMode(mode, int(v.MaxLen))
	same := slices.EqualFunc(h.Groups, v.Groups, func(a model.CacheGroup, b vllmLayers) bool {
		return a.Kind == vllmKinds[b.Kind] && a.Layers == b.Layers && a.Window == b.Window && a.BlockSize == b.BS
	})
	if blocks := v.Memory / h.BlockBytes(); !same || int(blocks) != v.Blocks || h.ScheduledBlock() != v.SchedulerBS {
		return nil, fmt.Errorf("the groups are %v with %d blocks, a hit is a multiple of %d tokens (recorded: %v, "+
			"%d, %d)",
			h.Groups, blocks, h.ScheduledBlock(), v.Groups, v.Blocks, v.SchedulerBS)
	}
	return h, nil
}

// vllmDrafts is speculative decoding: K drafts per iteration. Accept has the number of accepted ones in the successive
// iterations of a request.
type vllmDrafts struct {
	K, Slots int32
	Method   string
	Accept   []int32
}

// vllmStep is an iteration: the rows (request, tokens, cached tokens and, in some records, drafts), the preempted
// requests, the free blocks, the lengths of the batch and the queue and, with drafts, the tokens that each row
// delivers.
type vllmStep struct{ iteration }

func (s *vllmStep) UnmarshalJSON(data []byte) error {
	var rows []vllmRow
	if err := tuple(data, &rows, &s.Preempted, &s.Free, &s.Running, &s.Waiting); err != nil {
		return err
	}
	var delivered []int32
	if err := optional(data, 5, &delivered); err != nil {
		return err
	}
	for i, r := range rows {
		if s.drafts = i < len(delivered); s.drafts {
			r.Produced = delivered[i]
		}
		s.Rows = append(s.Rows, r.row)
	}
	return nil
}

type vllmRow struct{ row }

func (r *vllmRow) UnmarshalJSON(data []byte) error {
	if err := tuple(data, &r.Request, &r.Tokens, &r.Cached); err != nil {
		return err
	}
	return optional(data, 3, &r.Drafts)
}

func readVLLM(data []byte, c *Case) error {
	var in vllmCase
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	var cfg vllmConfig
	if err := decode(in.Config, &cfg); err != nil {
		return err
	}
	if err := cfg.setup(c); err != nil {
		return err
	}
	for i := range in.Requests {
		r, err := in.Requests[i].request()
		if err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		c.requests = append(c.requests, r)
	}
	for i := range in.Steps {
		c.iterations = append(c.iterations, in.Steps[i].iteration)
	}
	c.compares = func(got, want *iteration) bool {
		return slices.EqualFunc(got.Rows, want.Rows, sameTokens) &&
			(!want.drafts || slices.EqualFunc(got.Rows, want.Rows, sameDrafts)) &&
			slices.Equal(got.Preempted, want.Preempted) &&
			got.Free == want.Free && got.Running == want.Running && got.Waiting == want.Waiting
	}
	return nil
}

func sameTokens(a, b row) bool {
	return a.Request == b.Request && a.Tokens == b.Tokens && a.Cached == b.Cached
}

// sameDrafts reports whether both rows or none have drafts, and they deliver the same tokens. The number of drafts
// follows from the tokens. A recorded row that delivers nothing may belong to a request that ends before; what it
// computes is lost.
func sameDrafts(got, want row) bool {
	return (got.Drafts > 0) == (want.Drafts > 0) && (got.Produced == want.Produced || want.Produced == 0)
}

func (q *vllmRequest) request() (r workload.Request, err error) {
	r = workload.Request{Arrival: clock.Time(millis(q.At)), InputTokens: q.Prompt, OutputTokens: q.Out,
		Priority: q.Prio, Adapter: q.Lora}
	if q.Leave > 0 {
		r.Client = &workload.Client{Cancel: millis(q.Leave)}
	}
	if r.Content, err = q.Content.content(); err != nil {
		return r, err
	}
	return r, setOutput(&r, q.Ans)
}

func (v *vllmConfig) setup(c *Case) error {
	cfg := engine.Config{
		Timer:      fixedTimer(stepTime * clock.Duration(max(v.PP, 1))),
		MaxNumSeqs: v.Seqs, MaxNumBatchedTokens: v.Budget, MaxModelLen: v.MaxLen,
		BlockSize: int32(v.BS), NumGPUBlocks: v.Blocks, PrefixCaching: v.Caching,
		AsyncScheduling: v.Async, Stages: v.PP, MaxTokens: v.MaxTokens,
	}
	policy := sched.VLLM{
		DisableChunkedPrefill: !v.Chunked, LongPrefillTokenThreshold: v.Threshold, Watermark: v.Watermark,
		Admission: sched.FirstChunk, MaxLoRAs: v.MaxLoRAs, PadAdmissions: v.Spec != nil,
	}
	if v.Reserve {
		policy.Admission = sched.FullPrompt
	}
	switch v.Policy {
	case "fcfs":
	case "priority":
		cfg.Order, policy.Victim = sched.ByPriority{}, sched.LeastUrgent
	default:
		return &unknownError{"policy", v.Policy}
	}
	if len(v.Groups) > 0 {
		h, err := v.hybrid()
		if err != nil {
			return err
		}
		cfg.Hybrid = h
	}
	if v.Spec != nil {
		s, err := v.Spec.speculative()
		if err != nil {
			return err
		}
		cfg.Speculative = s
	}
	c.engine = func() engine.Config {
		cfg, policy := cfg, policy
		cfg.Scheduler = &policy
		return cfg
	}
	return nil
}

// draftMethods are the methods by their names in records.
var draftMethods = map[string]engine.DraftMethod{
	"eagle": engine.EAGLE, "ngram": engine.NGram, "draft": engine.DraftModel,
}

func (d *vllmDrafts) speculative() (engine.Speculative, error) {
	method, ok := draftMethods[d.Method]
	if !ok {
		return engine.Speculative{}, &unknownError{"spec.method", d.Method}
	}
	return engine.Speculative{Tokens: d.K, Method: method, Slots: d.Slots, LookaheadAtAdmission: true,
		Script: append([]int32{}, d.Accept...)}, nil
}
