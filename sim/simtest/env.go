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

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Runner runs an engine until the source is exhausted and the system has drained. [Naive] is one.
type Runner func(cfg sim.Config, src workload.Source, obs sim.Observer) error

// Env runs scenario files, in which a policy is described by what it schedules. Use it with
// [datadriven.RunTest] and its method Handle. Iterations have a constant length, so that instants can be
// told in steps. These are the commands:
//
//	config blocks=101 budget=64
//	    Begins a scenario. Arguments, with defaults: blocks (0, unlimited; it counts the null block),
//	    budget (8192), seqs (16), max-model-len (8192, or the budget with whole-prompts),
//	    block-size (16), step (10ms, the length of an iteration), frontend and stream (0, delays);
//	    caching, append-unkeyed, async (flags).
//	    For vLLM: threshold (0), watermark (0); priority, whole-prompts (chunked prefill off),
//	    first-chunk (admit on the first chunk only) (flags).
//	request A prompt=100 out=3
//	    Adds a request, which has a name. Further arguments: at=2 (sent when step 2 begins, if the engine
//	    never idled before) or at=11ms; leaves=65ms (the instant at which the client gives up); priority=5;
//	    content=(system:96, @B:20) (names and lengths of the leading segments; @B is the answer of
//	    request B, which needs a session); session=1 (turns are counted).
//	run
//	    Prints a row for each step; like rows are drawn together. A token that its client did not wait
//	    for stands in parentheses. Columns are left out where they are empty throughout.
//	    Free blocks are those after the step and what ended with it; with async, those after
//	    scheduling it. With the argument times the beginnings and ends of steps are added, in milliseconds.
//	requests
//	    Prints how the requests ended in the last run. Tokens are told by the step that produced them.
type Env struct {
	// Run runs the scenarios.
	Run Runner
	// Scheduler returns a new scheduler; nil is a [*sched.VLLM] with the knobs of the config command.
	Scheduler func() sched.Scheduler

	cfg      sim.Config
	vllm     sched.VLLM
	step     clock.Duration
	requests []workload.Request
	names    []string
	tape     *StepTape
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
	*e = Env{Run: e.Run, Scheduler: e.Scheduler}
	e.step = args.duration("step", 10*clock.Millisecond)
	priority := args.flag("priority")
	e.vllm = sched.VLLM{
		DisableChunkedPrefill:     args.flag("whole-prompts"),
		LongPrefillTokenThreshold: int32(args.int("threshold", 0)),
		AdmitOnFirstChunk:         args.flag("first-chunk"),
		Watermark:                 args.float("watermark", 0),
	}
	budget := args.int("budget", 8192)
	longest := 8192
	if e.vllm.DisableChunkedPrefill {
		longest = budget
	}
	e.cfg = sim.Config{
		Timer:               Affine{Base: int64(e.step) * clock.FemtosPerPico},
		MaxNumSeqs:          args.int("seqs", 16),
		MaxNumBatchedTokens: budget,
		MaxModelLen:         int32(args.int("max-model-len", longest)),
		BlockSize:           int32(args.int("block-size", 16)),
		NumGPUBlocks:        args.int("blocks", 0),
		PrefixCaching:       args.flag("caching"),
		AppendUnkeyed:       args.flag("append-unkeyed"),
		AsyncScheduling:     args.flag("async"),
		Frontend:            args.duration("frontend", 0),
		StreamPerSequence:   args.duration("stream", 0),
		Check:               true,
	}
	if priority {
		e.cfg.Order, e.vllm.Victim = sched.ByPriority{}, sched.LeastUrgent
	}
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
		Session:      int32(args.int("session", 0)),
		Arrival:      e.instant(args, "at", "1"),
	}
	if leaves := clock.Time(args.duration("leaves", 0)); leaves != 0 {
		r.Patience = leaves.Sub(r.Arrival)
	}
	for _, q := range e.requests {
		if q.Session != 0 && q.Session == r.Session {
			r.Turn++
		}
	}
	if r.InputTokens < 1 || r.OutputTokens < 1 || r.Patience < 0 {
		args.fault("request %s: prompt, out or leaves is missing or wrong", name)
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
		s.ID = workload.AnswerID(e.requests[i].Session, e.requests[i].Turn)
	}
	return s
}

func (e *Env) run(args *arguments) string {
	times := args.flag("times")
	if e.Scheduler != nil {
		e.cfg.Scheduler = e.Scheduler()
	} else {
		vllm := e.vllm
		e.cfg.Scheduler = &vllm
	}
	e.tape = new(StepTape)
	if err := e.Run(e.cfg, NewRequests(e.requests), e.tape); err != nil {
		return fmt.Sprintf("error: %v", err)
	}
	if err := CheckTape(&e.cfg, &e.tape.Tape); err != nil {
		return fmt.Sprintf("error: %v", err)
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

// err is what was wrong, including arguments that nobody asked for.
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
