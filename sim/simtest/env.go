package simtest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Runner runs an engine until the source is exhausted and the system has drained. [naive.Run] is one.
type Runner func(cfg engine.Config, src workload.Source, obs event.Observer) error

// Env runs scenario files, in which a policy is described by what it schedules. Use it with [datadriven.RunTest] and
// its method Handle. Iterations have a constant length, so that instants can be given in steps. These are the commands:
//
//	config policy=vllm blocks=101 budget=64
//	    Begins a scenario. Arguments, with defaults: policy (vllm) and its knobs, as listed at [Policies];
//	    order (fcfs) and its knobs, as listed at [Orders];
//	    blocks (0, unlimited; it counts the null block), budget (8192), seqs (16), max-model-len (8192, or the
//	    budget if the policy requires that), block-size (16), max-tokens (0, what clients declare);
//	    spec (0, drafts for each decoding sequence), method (ngram; eagle, mtp, draft) and accept=(3, 1, 0), how
//	    many of them are accepted in the successive iterations of a request, none after that;
//	    groups=(window64, full) (none; KV cache groups with block tables of their own: full attention, a sliding
//	    window of 64 tokens, chunk64, recurrent state or states, which have one at the end of each block),
//	    retention (0) and dense (flag), how many of their blocks the prefix cache keeps;
//	    host-blocks (0), max-queued and max-queued-tokens (0, no limits); caching, radix, contiguous,
//	    append-unkeyed, async (flags); recv-interval and stream-interval (1, see engine.Config); stages (1, of a
//	    pipeline; an iteration takes an equal part of its time in each, or with weights=(1, 3) such parts) and
//	    hop (0, from one stage to the next); retries (0, how often a client tries again after a timeout or a
//	    rejection) and backoff (0, how long it waits before).
//	    Times: step (10ms, the length of an iteration), row and token (0, added for each sequence or chunk
//	    and for each token of a chunk), swap (0, for each block moved), cpu and cpu-per-sequence (0), frontend,
//	    stream, network-in and network-out (0, delays).
//	request A prompt=100 out=3
//	    Adds a request with a name. Further arguments: at=2 (sent when step 2 begins, if the engine never
//	    idled before) or at=11ms; leaves=65ms (the client's timeout for the whole output), first-by=30ms (its
//	    timeout for the first token) and cancels=40ms (the user cancels if the output is not complete);
//	    silent (the server gets no abort); priority=5; adapter=2; user=3; class=2;
//	    content=(system:96, @B:20) (names and lengths of the leading segments; @B is the output of
//	    request B, which needs a session); session=1 (turns are counted).
//	run
//	    Prints a row for each step; equal rows are merged. A×3 has produced three tokens. A token in
//	    parentheses came after its client had left, or after the end of the output. Empty columns are left
//	    out. Held are running sequences that are given no token.
//	    Free blocks are those after the step and what ended with it; with async or stages, those after
//	    scheduling it. With the argument times the beginnings and ends of steps are added, in milliseconds.
//	requests
//	    Prints how the requests ended in the last run. A token is given by the step that produced it. The
//	    second attempt of request A is called A′.
type Env struct {
	// Run runs the scenarios.
	Run Runner
	// Policies are known in addition to those of package sched.
	Policies []Policy

	policy    Policy
	knobs     *Knobs
	cfg       engine.Config
	step      clock.Duration
	retries   Retries
	requests  []workload.Request
	names     []string
	attempts  []string // names in the last run, by ID
	recording *StepRecorder
}

// Handle carries out a command of a scenario file and returns what it prints.
func (e *Env) Handle(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	args := arguments{list: d.CmdArgs}
	out := ""
	switch d.Cmd {
	case "config":
		e.config(&args)
	case "request":
		e.request(&args)
	case "run":
		out = e.run(&args)
	case "requests":
		out = e.ends(&args)
	default:
		args.fault("unknown command %q", d.Cmd)
	}
	if err := args.err(); err != nil {
		d.Fatalf(t, "%v", err)
	}
	return out
}

func (e *Env) config(args *arguments) {
	*e = Env{Run: e.Run, Policies: e.Policies}
	e.step = args.duration("step", 10*clock.Millisecond)
	e.knobs = &Knobs{args: args}
	var err error
	if e.policy, err = policy(slices.Concat(e.Policies, Policies()), args.text("policy", "vllm")); err != nil {
		args.fault("%v", err)
		return
	}
	femtos := func(key string, otherwise clock.Duration) int64 {
		return int64(args.duration(key, otherwise)) * clock.FemtosPerPico
	}
	e.cfg = engine.Config{
		Scheduler: e.policy.New(e.knobs),
		Timer: Affine{Base: int64(e.step) * clock.FemtosPerPico, PerSeq: femtos("row", 0),
			PerToken: femtos("token", 0)},
		MaxNumSeqs:          args.int("seqs", 16),
		MaxNumBatchedTokens: args.int("budget", 8192),
		MaxModelLen:         int32(args.int("max-model-len", 8192)),
		BlockSize:           int32(args.int("block-size", 16)),
		NumGPUBlocks:        args.int("blocks", 0),
		PrefixCaching:       args.flag("caching"),
		AppendUnkeyed:       args.flag("append-unkeyed"),
		Radix:               args.flag("radix"),
		Contiguous:          args.flag("contiguous"),
		AsyncScheduling:     args.flag("async"),
		Stages:              args.int("stages", 1),
		MaxTokens:           int32(args.int("max-tokens", 0)),
		MaxQueuedRequests:   args.int("max-queued", 0),
		MaxQueuedTokens:     int64(args.int("max-queued-tokens", 0)),
		HostBlocks:          args.int("host-blocks", 0),
		HostFemtosPerBlock:  femtos("swap", 0),
		RecvInterval:        args.int("recv-interval", 1),
		CPUStep:             args.duration("cpu", 0),
		CPUPerSequence:      args.duration("cpu-per-sequence", 0),
		Frontend:            args.duration("frontend", 0),
		NetworkIn:           args.duration("network-in", 0),
		NetworkOut:          args.duration("network-out", 0),
		StreamPerSequence:   args.duration("stream", 0),
		StreamInterval:      args.int("stream-interval", 1),
		Speculative:         speculative(args),
		Check:               true,
	}
	e.cfg.Hybrid = hybrid(args, &e.cfg)
	if e.cfg.Stages > 1 {
		e.cfg.Timer = staged(args, e.cfg.Stages, e.cfg.Timer, femtos("hop", 0))
	}
	e.retries = Retries{Most: int32(args.int("retries", 0)), Delay: args.duration("backoff", 0)}
	e.cfg.Order = queueOrder(e.knobs)
	if asked := e.cfg; asked.Validate() != nil {
		e.cfg.MaxModelLen = min(e.cfg.MaxModelLen, int32(e.cfg.MaxNumBatchedTokens))
	}
}

// speculative reads what is said of drafts.
func speculative(args *arguments) engine.Speculative {
	p := engine.Speculative{Tokens: int32(args.int("spec", 0)), Slots: int32(args.int("draft-slots", 0)),
		LookaheadAtAdmission: !args.flag("late-lookahead"), Script: []int32{}}
	methods := []string{"ngram", "eagle", "mtp", "draft"}
	name := args.text("method", "ngram")
	if i := slices.Index(methods, name); i >= 0 {
		p.Method = engine.DraftMethod(i)
	} else {
		args.fault("method: %q is none of %v", name, methods)
	}
	for _, text := range args.values("accept") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			args.fault("accept: %q is not a number of drafts", text)
		}
		p.Script = append(p.Script, int32(n))
	}
	return p
}

func (e *Env) request(args *arguments) {
	name := args.name()
	if slices.Contains(e.names, name) {
		args.fault("there is a request %s already", name)
	}
	r := workload.Request{
		InputTokens:  int32(args.int("prompt", 0)),
		OutputTokens: int32(args.int("out", 0)),
		Priority:     int16(args.int("priority", 0)),
		Adapter:      int32(args.int("adapter", 0)),
		Session:      int32(args.int("session", 0)),
		User:         int32(args.int("user", 0)),
		Class:        uint16(args.int("class", 0)),
		Arrival:      e.instant(args, "at", "1"),
	}
	r.Client = client(args, r.Arrival)
	for _, q := range e.requests {
		if q.Session != 0 && q.Session == r.Session {
			r.Turn++
		}
	}
	if r.InputTokens < 1 || r.OutputTokens < 1 {
		args.fault("request %s: prompt or out is missing or wrong", name)
	}
	if n := len(e.requests); n > 0 && r.Arrival < e.requests[n-1].Arrival {
		args.fault("request %s arrives before %s, which stands before it", name, e.names[n-1])
	}
	if segments := args.values("content"); segments != nil {
		r.Content = &workload.Content{}
		for _, s := range segments {
			r.Content.Segments = append(r.Content.Segments, e.segment(args, s))
		}
	}
	e.requests = append(e.requests, r)
	e.names = append(e.names, name)
}

// client reads how the client of a request that is sent at an instant waits.
func client(args *arguments, sent clock.Time) *workload.Client {
	limit := func(key string) clock.Duration {
		at := clock.Time(args.duration(key, 0))
		if at != 0 && at <= sent {
			args.fault("%s: it is sent only then", key)
		}
		return max(0, at.Sub(sent))
	}
	c := workload.Client{Timeout: limit("leaves"), FirstTimeout: limit("first-by"), Cancel: limit("cancels"),
		Silent: args.flag("silent")}
	if c == (workload.Client{}) {
		return nil
	}
	return &c
}

// instant is an argument that is the number of a step or a length of time.
func (e *Env) instant(args *arguments, key, otherwise string) clock.Time {
	text := args.text(key, otherwise)
	if step, err := strconv.Atoi(text); err == nil {
		return clock.Time(step-1) * clock.Time(e.step)
	}
	return clock.Time(args.parseDuration(key, text))
}

// segment is an element of a content.
func (e *Env) segment(args *arguments, text string) (s workload.Segment) {
	name, length, _ := strings.Cut(text, ":")
	tokens, err := strconv.Atoi(strings.TrimSpace(length))
	if err != nil || tokens < 1 {
		args.fault("content: %q is not NAME:TOKENS", text)
	}
	s = workload.Segment{ID: workload.SegmentID(name), Tokens: int32(tokens)}
	if answer, ok := strings.CutPrefix(name, "@"); ok {
		i := slices.Index(e.names, answer)
		if i < 0 || e.requests[i].Session == 0 {
			args.fault("content: %q: there is no request %s with a session", text, answer)
			return s
		}
		s.ID = workload.OutputID(e.requests[i].Session, e.requests[i].Turn)
	}
	return s
}

func (e *Env) run(args *arguments) string {
	times := args.flag("times")
	e.cfg.Scheduler = e.policy.New(e.knobs)
	recorder := new(StepRecorder)
	src := NewRequests(e.requests).Retry(e.retries)
	err := e.Run(e.cfg, src, recorder)
	if err == nil {
		err = errors.Join(CheckRecording(&e.cfg, &recorder.Recorder), checkEnded(&e.cfg, &recorder.Recorder, src.Ended))
	}
	if err != nil {
		e.recording = nil
		return fmt.Sprintf("error: %v", err)
	}
	e.recording, e.attempts = recorder, nil
	for _, i := range src.sent {
		e.attempts = append(e.attempts, e.names[src.origin[i]]+strings.Repeat("′", int(src.list[i].Attempt())))
	}
	return e.table(times)
}

// arguments reads the arguments of a command and collects what is wrong with them.
type arguments struct {
	list   []datadriven.CmdArg
	faults []error
}

func (a *arguments) fault(format string, args ...any) {
	a.faults = append(a.faults, fmt.Errorf(format, args...))
}

// err returns what was wrong, including unknown arguments.
func (a *arguments) err() error {
	for _, arg := range a.list {
		a.fault("unknown argument %s", arg.String())
	}
	return errors.Join(a.faults...)
}

// values takes an argument from the list; nil if it is not there.
func (a *arguments) values(key string) []string {
	for i, arg := range a.list {
		if arg.Key == key {
			a.list = slices.Delete(slices.Clone(a.list), i, i+1)
			return append([]string{}, arg.Vals...)
		}
	}
	return nil
}

// name takes the first argument, which has no value.
func (a *arguments) name() string {
	if len(a.list) == 0 || len(a.list[0].Vals) > 0 {
		a.fault("a name is missing")
		return ""
	}
	name := a.list[0].Key
	a.list = a.list[1:]
	return name
}

func (a *arguments) flag(key string) bool {
	v := a.values(key)
	if len(v) > 0 {
		a.fault("%s: takes no value", key)
	}
	return v != nil
}

func (a *arguments) text(key, otherwise string) string {
	v := a.values(key)
	if v == nil {
		return otherwise
	}
	if len(v) != 1 {
		a.fault("%s: takes one value", key)
		return otherwise
	}
	return v[0]
}

func (a *arguments) int(key string, otherwise int) int {
	n, err := strconv.Atoi(a.text(key, strconv.Itoa(otherwise)))
	if err != nil {
		a.fault("%s: %v", key, err)
	}
	return n
}

func (a *arguments) float(key string, otherwise float64) float64 {
	f, err := strconv.ParseFloat(a.text(key, fmt.Sprint(otherwise)), 64)
	if err != nil {
		a.fault("%s: %v", key, err)
	}
	return f
}

func (a *arguments) duration(key string, otherwise clock.Duration) clock.Duration {
	text := a.text(key, "")
	if text == "" {
		return otherwise
	}
	return a.parseDuration(key, text)
}

func (a *arguments) parseDuration(key, text string) clock.Duration {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		a.fault("%s: %q is not a length of time", key, text)
	}
	return clock.Duration(d) * clock.Nanosecond
}
