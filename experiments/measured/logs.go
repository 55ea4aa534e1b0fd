package measured

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"clifftop/internal/pattern"
)

// logFormat is a log of an engine with lines of the scheduler's state.
func logFormat(name, layout, source string, is *pattern.Pattern, read func(l *logReader, text string)) format {
	return format{
		Format: Format{Name: name, Layout: layout, Series: true, Source: source},
		is:     func(f *file) bool { return f.document == nil && f.lines == nil && is.Get().Match(f.text) },
		read: func(f *file, r *Result) {
			l := &logReader{run: Run{Name: "log"}, result: r}
			for _, text := range strings.Split(string(f.text), "\n") {
				read(l, text)
			}
			if len(l.run.Series) > 0 && l.untimed > 0 {
				r.note("%d lines have no time: each is taken as %v after the one before", l.untimed, l.step)
			}
			l.run.sortSeries()
			r.Runs = []Run{l.run}
		},
	}
}

// logReader collects samples of a log.
type logReader struct {
	run     Run
	result  *Result
	last    time.Time
	step    time.Duration // between lines without a time
	untimed int
}

// add adds a sample. A time before the one of the line before by half a year belongs to the next year.
func (l *logReader) add(at time.Time, s Sample) {
	if at.IsZero() {
		l.untimed++
		if l.last.IsZero() {
			l.last = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		at = l.last.Add(l.step)
	}
	const halfYear = 180 * 24 * time.Hour
	for !l.last.IsZero() && at.Year() <= 2001 && l.last.Sub(at) > halfYear {
		at = at.AddDate(1, 0, 0)
	}
	l.last = at
	s.At = at.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	l.run.Series = append(l.run.Series, s)
}

// label reads the number behind a label such as "Running: "; nil if it is not there.
func label(text string, by float64, labels ...string) *float64 {
	for _, name := range labels {
		_, rest, ok := strings.Cut(text, name)
		if !ok {
			continue
		}
		end := 0
		for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || rest[end] == '.' || rest[end] == 'e' ||
			rest[end] == '-' &&
				end > 0) {
			end++
		}
		if x, err := strconv.ParseFloat(strings.TrimRight(rest[:end], ".e"), 64); err == nil && x >= 0 {
			x *= by
			return &x
		}
	}
	return nil
}

var (
	vllmLine    = pattern.New(`Avg prompt throughput: [0-9.]+ tokens/s`)
	vllmTime    = pattern.New(`\b(\d\d-\d\d \d\d:\d\d:\d\d) `)
	vllmEngine  = pattern.New(`Engine (\d+): Avg`)
	vllmBlocks  = pattern.New(`GPU KV cache size: ([0-9,]+) tokens`)
	sglangLine  = pattern.New(`(?:Prefill|Decode) batch[., ]`)
	sglangTime  = pattern.New(`\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)((?: [A-Z]+\d+)*)\]`)
	trtllmLine  = pattern.New(`\biter = \d+,.*states = \{`)
	trtllmTime  = pattern.New(`\[(\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)\]`)
	trtllmRank  = pattern.New(`\bglobal_rank = (\d+)|\[RANK (\d+)\]`)
	rankOfPart  = pattern.New(`(TP|PP|EP)([1-9]\d*)`)
	dataReplica = pattern.New(`DP\d+`)
)

// vllmLogFormat reads the lines that vLLM writes every VLLM_LOG_STATS_INTERVAL seconds, of V0 and V1. Use and hit rate
// are percent there. Their times have no year.
// Source: vllm-project/vllm vllm/v1/metrics/loggers.py.
func vllmLogFormat() format {
	return logFormat("vllm-log", "log of vLLM with lines \"Avg prompt throughput: …, Running: … reqs\", V0 and V1",
		"https://github.com/vllm-project/vllm", vllmLine, func(l *logReader, text string) {
			l.run.Engine, l.step = "vllm", 10*time.Second
			if m := vllmBlocks.Get().FindStringSubmatch(text); m != nil {
				l.result.note("the log says that the KV cache holds %s tokens", m[1])
			}
			if share := label(text, 0.01, "Prefix cache hit rate: GPU: "); share != nil && len(l.run.Series) > 0 &&
				!vllmLine.Get().MatchString(text) {
				l.run.Series[len(l.run.Series)-1].HitRate = share // a line of its own in V0
			}
			if !vllmLine.Get().MatchString(text) {
				return
			}
			var at time.Time
			if m := vllmTime.Get().FindStringSubmatch(text); m != nil {
				at, _ = time.Parse("2006-01-02 15:04:05", "2000-"+m[1])
			}
			s := Sample{Running: label(text, 1, "Running: "), Waiting: label(text, 1, "Waiting: ", "Pending: "),
				KVUse: label(text, 0.01, "GPU KV cache usage: "), HitRate: label(text, 0.01, ", Prefix cache hit "+
					"rate: "),
				PromptTokensPerS: label(text, 1, "Avg prompt throughput: "),
				OutputTokensPerS: label(text, 1, "Avg generation throughput: ")}
			if m := vllmEngine.Get().FindStringSubmatch(text); m != nil && m[1] != "000" {
				s.Replica = "engine " + m[1]
			}
			l.add(at, s)
		})
}

// sglangLogFormat reads SGLang's lines of prefill and decode batches. Token usage is a share. Lines of the ranks of one
// engine are equal: the first rank is taken.
// Source: sgl-project/sglang python/sglang/srt/managers/scheduler_metrics_mixin.py.
func sglangLogFormat() format {
	return logFormat("sglang-log", "log of SGLang with lines \"Decode batch. #running-req: …, token usage: …\"",
		"https://github.com/sgl-project/sglang", sglangLine, func(l *logReader, text string) {
			l.run.Engine, l.step = "sglang", time.Second
			at := sglangLine.Get().FindStringIndex(text)
			if at == nil || !strings.Contains(text, "#running-req: ") {
				return
			}
			var when time.Time
			s := Sample{}
			if m := sglangTime.Get().FindStringSubmatch(text); m != nil {
				if rankOfPart.Get().MatchString(m[2]) {
					return
				}
				when, _ = time.Parse("2006-01-02 15:04:05", m[1])
				s.Replica = dataReplica.Get().FindString(m[2])
			}
			body := text[at[0]:]
			s.Running, s.Waiting = label(body, 1, "#running-req: "), label(body, 1, "#queue-req: ")
			s.KVUse = label(body, 1, "full token usage: ", ", token usage: ")
			s.OutputTokensPerS = label(body, 1, "gen throughput (token/s): ")
			s.PromptTokensPerS = label(body, 1, "input throughput (token/s): ")
			s.HitRate = label(body, 0.01, "cache hit rate: ")
			fresh, cached := label(body, 1, "#new-token: "), label(body, 1, "#cached-token: ")
			if all := sum(fresh, cached); s.HitRate == nil && all != nil && *all > 0 {
				s.HitRate = quotient(cached, all)
			}
			l.add(when, s)
		})
}

// trtllmLogFormat reads the lines of TensorRT-LLM with print_iter_log: one per iteration. Rates are tokens of the step
// over its time on the host.
// Source: NVIDIA/TensorRT-LLM, tensorrt_llm/_torch/pyexecutor/py_executor.py.
func trtllmLogFormat() format {
	return logFormat("trtllm-log", "log of TensorRT-LLM with print_iter_log: lines \"iter = …, states = {…}\"",
		"https://github.com/NVIDIA/TensorRT-LLM", trtllmLine, func(l *logReader, text string) {
			l.run.Engine, l.step = "trtllm", 0
			if !trtllmLine.Get().MatchString(text) {
				return
			}
			if m := trtllmRank.Get().FindStringSubmatch(text); m != nil && strings.Trim(m[1]+m[2], "0") != "" {
				return
			}
			var at time.Time
			if m := trtllmTime.Get().FindStringSubmatch(text); m != nil {
				at, _ = time.Parse("01/02/2006-15:04:05", m[1])
			}
			s := Sample{Running: label(text, 1, "num_scheduled_requests: ", "num_scheduled_requests = "),
				KVUse: label(text, 1, "kv_cache_util = ")}
			if step := label(text, 1e-3, "host_step_time = "); step != nil {
				s.PromptTokensPerS = quotient(label(text, 1, "'num_ctx_tokens': "), step)
				s.OutputTokensPerS = quotient(label(text, 1, "'num_generation_tokens': "), step)
			}
			l.add(at, s)
		})
}

// trtllmStatsFormat is the answer of trtllm-serve's /metrics: a list of iterations.
// Source: TensorRT-LLM, documentation of trtllm-serve.
func trtllmStatsFormat() format {
	return format{
		Format: Format{Name: "trtllm-stats", Layout: "JSON list of iterations of trtllm-serve's /metrics " +
			"(enable_iter_perf_stats)", Series: true, Source: "https://nvidia.github.io/TensorRT-LLM"},
		is: func(f *file) bool { l := f.list(); return len(l) > 0 && l[0].has("iter", "numActiveRequests") },
		read: func(f *file, r *Result) {
			run := Run{Engine: "trtllm", Name: "iterations"}
			at := 0.0
			for i, o := range f.list() {
				kv, batch := o.get("kvCacheStats"), o.get("inflightBatchingStats")
				at += o.value("iterLatencyMS") / 1e3
				s := Sample{At: seconds64(at), Running: o.number("numActiveRequests"),
					Waiting: o.number("numQueuedRequests"),
					KVUse:   quotient(kv.number("usedNumBlocks"), kv.number("maxNumBlocks")),
					HitRate: kv.number("cacheHitRate")}
				if n := batch.number("numGenRequests"); n != nil && s.Running == nil {
					s.Running = n
				}
				if i == 0 && kv.has("maxNumBlocks", "tokensPerBlock") {
					r.note("the KV cache holds %s tokens",
						fmt.Sprintf("%.0f", kv.value("maxNumBlocks")*kv.value("tokensPerBlock")))
				}
				run.Series = append(run.Series, s)
			}
			run.sortSeries()
			r.Runs = []Run{run}
		},
	}
}
