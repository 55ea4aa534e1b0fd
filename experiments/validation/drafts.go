package validation

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"clifftop/internal/pattern"
	"clifftop/model"
)

// Multi-token prediction: the drafter is a layer of the model, and its drafts are verified in the next iteration.

// draftCount finds the number of drafts in the flags of launch scripts: SGLang's steps, TensorRT-LLM's layers, and the
// tokens of vLLM and ATOM. A specification may say it too.
var draftCount = []*pattern.Pattern{
	pattern.New(`--speculative-num-steps[ =]([0-9]+)`),
	pattern.New(`num_nextn_predict_layers: *([0-9]+)`),
	pattern.New(`num[-_]speculative[-_]tokens["']?[ =:]+([0-9]+)`),
	pattern.New(`^mtp, ([0-9]+) draft`),
}

// Drafts of pools whose launch scripts are not known: recipes of SGLang have two everywhere. Those of TensorRT-LLM are
// read off the chunks of measured runs: three with few sequences on a rank, and one with hundreds.
const (
	sglangDrafts   = 2
	trtllmDrafts   = 3
	manySequences  = 256 // of a rank
	draftsWithMany = 1
)

// mostDrafts is the largest number of drafts that a scenario takes.
const mostDrafts = 64

// drafts returns the number of drafts of a sequence in an iteration, 0 without multi-token prediction, and whether a
// rule gave it. share is the users of a decoding rank, where that is known.
func (r *Row) drafts(share int) (n int, ruled bool, err error) {
	method, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(r.SpecMethod)), ",")
	switch method {
	case "", "none", "off":
		return 0, false, nil
	case "mtp", "eagle":
	default:
		return 0, false, fmt.Errorf("spec_method: %q is not known (want none or mtp)", r.SpecMethod)
	}
	if n := or(r.DraftTokens, 0); n > 0 && n <= mostDrafts {
		return n, false, nil
	}
	for _, text := range []string{r.EngineFlags, r.SpecMethod} {
		for _, p := range draftCount {
			if m := p.Get().FindStringSubmatch(text); m != nil {
				if n, err = strconv.Atoi(m[1]); err != nil || n < 1 || n > mostDrafts {
					return 0, false, fmt.Errorf("engine_flags: %s drafts are not allowed (want 1 to %d)",
						m[1], mostDrafts)
				}
				return n, false, nil
			}
		}
	}
	switch {
	case strings.Contains(r.Engine, "sglang"):
		return sglangDrafts, true, nil
	case strings.Contains(r.Engine, "trt") && share >= manySequences:
		return draftsWithMany, true, nil
	case strings.Contains(r.Engine, "trt") && r.EngineFlags == "":
		return trtllmDrafts, true, nil
	}
	return 1, true, nil
}

// Acceptance of the multi-token prediction layer of DeepSeek's models, by place. Short outputs: 2.18 and 2.44 tokens an
// iteration with 2 and 3 drafts (lmsys.org, Accelerating SGLang with Multiple Token Prediction, 2025-07-17), about 2.5
// with 3 on random prompts in the chat template (InferenceX, pull request 649). The chunks of published runs, which
// carry the tokens of a fixed number of iterations, have 1.73 with 1, 2.1 to 2.3 with 2 and 2.26 to 2.43 with 3.
// Outputs that are forced beyond their end repeat themselves: with about 7,000 tokens they have 1.89, 2.5 and 2.95.
var (
	acceptance     = []float64{0.74, 0.595, 0.45}
	longAcceptance = []float64{0.887, 0.7, 0.72}
)

// longOutput is the smallest number of output tokens with longAcceptance.
const longOutput = 3000

// acceptance returns the acceptance rates of the row's drafts.
func (r *Row) acceptance() []float64 {
	if or(r.OutputNominal, 0) >= longOutput {
		return longAcceptance
	}
	return acceptance
}

// yield is the mean number of tokens of an iteration of a sequence.
func (r *Row) yield() float64 {
	n, _, err := r.drafts(0)
	if n == 0 || err != nil {
		return 1
	}
	return model.ExpectedYield(n, r.acceptance())
}

// iterations are so many of the engine's iterations as the simulation counts them, which is one for each token of a
// sequence under policies that decode with the mean yield.
func (w *writer) iterations(n int) int {
	if n <= 1 || w.row.policy() == "vllm" {
		return n
	}
	return int(math.Round(float64(n) * w.row.yield()))
}

func (w *writer) speculative() error {
	list, err := w.draftList(0)
	if list != "" {
		w.line("  speculative: %s", list)
	}
	return err
}

// draftList is speculative decoding as a scenario writes it; empty without it.
func (w *writer) draftList(share int) (string, error) {
	n, ruled, err := w.row.drafts(share)
	if n == 0 || err != nil {
		return "", err
	}
	w.c.apply("acceptance")
	if ruled {
		w.c.note("the number of drafts is not known: simulated with %d", n)
	}
	var list []string
	for _, a := range w.row.acceptance()[:min(n, len(acceptance))] {
		list = append(list, strconv.FormatFloat(a, 'g', -1, 64))
	}
	return fmt.Sprintf("{method: mtp, num_speculative_tokens: %d, acceptance: [%s]}", n, strings.Join(list, ", ")), nil
}

// draftHosts is the host time for each sequence and iteration of SGLang's speculative worker, in microseconds, by the
// first release that it holds for. The worker prepares and verifies drafts on the host between iterations, without
// overlap. Fitted to published runs of DeepSeek-R1 with 4 to 512 users on B200 (up to 0.5.9, 0.5.11, 0.5.12) and B300
// (0.5.10); pools of B200 ask for 85 to 180 up to 0.5.9 and for 50 in 0.5.12.
var draftHosts = []struct{ minor, micros int }{{0, 130}, {10, 450}, {11, 300}, {12, 50}}

// draftHostAMD holds on AMD's GPUs: six runs on MI325X.
const draftHostAMD = 600

var sglangMinor = pattern.New(`^sglang-0\.5\.([0-9]+)`)

// draftHost is the host time of drafts for each sequence in a simulated iteration, in microseconds; 0 if they need
// none.
func (r *Row) draftHost() float64 {
	if n, _, err := r.drafts(0); n == 0 || err != nil || r.Engine != "sglang" {
		return 0
	}
	micros := draftHosts[0].micros
	version, _ := r.version()
	minor := -1
	if m := sglangMinor.Get().FindStringSubmatch(version); m != nil {
		minor, _ = strconv.Atoi(m[1])
	} else if dayOf(r) >= "2026-05-16" {
		minor = draftHosts[len(draftHosts)-1].minor
	}
	for _, h := range draftHosts {
		if minor >= h.minor {
			micros = h.micros
		}
	}
	if gpu, _, err := r.gpu(); err == nil && strings.HasPrefix(gpu.Name, "mi") {
		micros = draftHostAMD
	}
	return float64(micros) / r.yield()
}
