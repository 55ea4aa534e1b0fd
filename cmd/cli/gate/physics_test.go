package gate

import (
	"fmt"
	"math"
	"regexp"
	"strings"
)

// signed are the numbers of a summary that may be below 0.
var signed = regexp.MustCompile(`^(ci95\.|predictive\.|accuracy\.|window\.growth|scenario\.|.*priority$)`)

// machine are the fractions that only a timer of a real machine keeps below 1, and only over many iterations: an
// iteration counts where it ends.
var machine = regexp.MustCompile(`(^|\.)(mfu|mbu)$`)

// fractions are the numbers of a summary that are between 0 and 1.
var fractions = regexp.MustCompile(`(busy_fraction|mfu|mbu|hit_rate|error_rate|attainment|_fraction|gap_by_cause\.\w+|` +
	`kv_usage\.\w+|work_fraction|share|probability)$`)

// relative are widths and errors that may exceed what they are of.
var relative = regexp.MustCompile(`^(ci95|predictive|accuracy|replications)\.`)

// inspect lists what is wrong with a summary.
func inspect(sum map[string]any) (problems []string) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	timed := fmt.Sprint(doc(sum).get("scenario.step_time"), doc(sum).get("scenario.pools"))
	const many = 100
	real := !strings.Contains(timed, "table") && !strings.Contains(timed, "linear") &&
		number(doc(sum).get("system.iterations")) >= many*float64(max(1, len(listOf(sum, "replicas"))))
	numbersOf("", sum, func(path string, v float64) {
		switch {
		case machine.MatchString(path) && (!real || strings.HasPrefix(path, "replicas")):
		case strings.HasPrefix(path, "scenario."):
		case math.IsNaN(v) || math.Abs(v) > 1e18:
			wrong("%s is %v", path, v)
		case v < 0 && !signed.MatchString(path):
			wrong("%s is %v: below 0", path, v)
		case v > 1+1e-9 && fractions.MatchString(path) && !relative.MatchString(path):
			wrong("%s is %v: above 1", path, v)
		}
	})
	distributionsOf("", sum, func(path string, d map[string]any) {
		if strings.HasPrefix(path, "scenario.") {
			return
		}
		ordered(path, d, sum["replications"] != nil, wrong)
	})
	parts := []map[string]any{sum}
	for _, list := range []string{"classes", "stages"} {
		parts = append(parts, listOf(sum, list)...)
	}
	for _, p := range parts {
		counted(doc(p), wrong)
	}
	for _, p := range append(parts, listOf(sum, "replicas")...) {
		consistent(doc(p), wrong)
		// The mean is over the time in which a replica serves. One that stops or loses its link holds blocks for longer.
		mean, largest := number(doc(p).get("system.kv_usage.mean")), number(doc(p).get("system.kv_usage.max"))
		if mean > largest*(1+1e-9) && !changes(doc(sum)) {
			wrong("the mean KV usage is %v, and the maximum %v", mean, largest)
		}
	}
	for list, path := range map[string]string{"classes": "requests.offered", "stages": "requests.offered"} {
		total, all := 0., listOf(sum, list)
		for _, p := range all {
			total += number(doc(p).get(path))
		}
		if whole, ok := doc(sum).get(path).(float64); ok && len(all) > 0 && all[0]["requests"] != nil && total != whole {
			wrong("%s of the %s add up to %v, and the whole has %v", path, list, total, whole)
		}
	}
	return problems
}

// changes reports whether replicas come and go in a run.
func changes(sum doc) bool {
	for _, key := range []string{"failures", "random_crashes", "autoscale"} {
		if v := sum.get("scenario.lifecycle." + key); v != nil && fmt.Sprint(v) != "[]" {
			return true
		}
	}
	return false
}

// consistent asserts relations between the numbers of a run, or of a part of it.
func consistent(s doc, wrong func(format string, args ...any)) {
	for _, pair := range [][2]string{
		{"concurrency.running.max", "concurrency.in_system.max"}, {"concurrency.decoding.max", "concurrency.running.max"},
		{"concurrency.queue_depth.max", "concurrency.in_system.max"},
		{"concurrency.running.mean", "concurrency.in_system.mean"},
		{"concurrency.decoding.mean", "concurrency.running.mean"},
		{"throughput.successful_output_tokens_per_s", "throughput.output_tokens_per_s"},
		{"throughput.input_tokens_per_s", "throughput.total_tokens_per_s"},
		{"latency_ms.queue.max", "latency_ms.e2e.max"}, {"latency_ms.ttft.max", "latency_ms.e2e.max"},
		{"latency_ms.ttft.mean", "latency_ms.e2e.mean"}, {"latency_ms.tpot.max", "latency_ms.e2e.max"},
	} {
		low, known := s.get(pair[0]).(float64)
		if high, ok := s.get(pair[1]).(float64); known && ok && low > high*(1+1e-9) {
			wrong("%s is %v, above %s, which is %v", pair[0], low, pair[1], high)
		}
	}
	if by, ok := s.get("system.gap_by_cause").(map[string]any); ok {
		total := 0.
		for _, v := range by {
			total += number(v)
		}
		free := number(by["policy"]) + number(by["idle"]) + number(by["boundary"])
		if gap := number(s.get("system.gap_fraction")); math.Abs(free-gap) > 1e-9 {
			wrong("gap_fraction is %v, and its causes add up to %v", gap, free)
		}
		if gap := number(s.get("system.gap_fraction_seed")); gap > total+1e-9 || total > 1+1e-9 {
			wrong("gap_fraction_seed is %v, and all causes add up to %v", gap, total)
		}
	}
}

// counted asserts the conservation of requests and tokens.
func counted(s doc, wrong func(format string, args ...any)) {
	r, ok := s["requests"].(map[string]any)
	if !ok {
		return
	}
	sum := 0.
	for _, key := range []string{"completed", "rejected", "timed_out", "cancelled", "failed", "in_system_at_end"} {
		sum += number(r[key])
	}
	if offered, ok := r["offered"].(float64); ok && sum != offered {
		wrong("%v requests offered, and the ends add up to %v", offered, sum)
	}
	if number(r["rejected_busy"])+number(r["rejected_too_long"]) > number(r["rejected"]) {
		wrong("more rejections by reason than rejections: %v", r)
	}
	retried := 0.
	if by, ok := r["retried_after"].(map[string]any); ok {
		for _, v := range by {
			retried += number(v)
		}
		// At the end of a run that is cut, some clients are about to send the next attempt, and some attempts that clients
		// gave up go on.
		if n := number(r["retries"]); retried != n && number(r["in_system_at_end"]) == 0 {
			wrong("%v retries, by cause %v", n, retried)
		}
	}
	tokens, _ := s["tokens"].(map[string]any)
	for _, pair := range [][2]string{{"cached_input", "input"}, {"output_successful", "output"},
		{"output_good", "output_successful"}} {
		if number(tokens[pair[0]]) > number(tokens[pair[1]]) {
			wrong("tokens.%s is %v, above %s, which is %v", pair[0], tokens[pair[0]], pair[1], tokens[pair[1]])
		}
	}
}

// statistics are those of a distribution, in the order of their size.
var statistics = []string{"p50", "p90", "p95", "p99", "p99_9", "max"}

// ordered asserts the order of the percentiles of a distribution.
func ordered(path string, d map[string]any, pooled bool, wrong func(format string, args ...any)) {
	var known []float64
	for _, key := range statistics {
		if v, ok := d[key].(float64); ok {
			known = append(known, v)
		}
	}
	tolerance := 0.
	if len(known) > 0 {
		tolerance = 1e-9 * math.Abs(known[len(known)-1])
	}
	for i := 1; i < len(known); i++ {
		if known[i] < known[i-1]-tolerance {
			wrong("%s: percentiles are out of order: %v", path, known)
			break
		}
	}
	mean, ok := d["mean"].(float64)
	largest, has := d["max"].(float64)
	if ok && has && mean > largest+tolerance {
		wrong("%s: the mean %v is above the maximum %v", path, mean, largest)
	}
	// With failures, which count as infinite, a mean may be unknown; also if one of several runs has no sample.
	n, ok := d["n"].(float64)
	if ok && (n == 0 && d["mean"] != nil || n > 0 && d["mean"] == nil && !pooled) &&
		!strings.Contains(path, "with_failures") {
		wrong("%s: n is %v and the mean is %v", path, n, d["mean"])
	}
}

// agree lists where the rows of requests contradict each other or the summary.
func agree(sum doc, rows []map[string]string) (problems []string) {
	wrong := func(format string, args ...any) {
		if len(problems) < 10 {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	ends := map[string]float64{}
	var attempts, output float64
	for _, row := range rows {
		times(row, wrong)
		attempts++
		if row["again"] != "true" {
			ends[row["outcome"]]++
		}
		o, _ := cell(row, "output_tokens")
		output += o
	}
	r, _ := sum["requests"].(map[string]any)
	for _, key := range []string{"completed", "rejected", "timed_out", "cancelled", "failed"} {
		if ends[key] != number(r[key]) {
			wrong("%v rows are %s, and the summary counts %v", ends[key], key, r[key])
		}
	}
	if inSystem := number(r["in_system_at_end"]); inSystem == 0 && attempts != number(r["attempts"]) {
		wrong("%v rows of %v attempts", attempts, r["attempts"])
	} else if tokens := number(sum.get("tokens.output")); inSystem == 0 && output != tokens {
		wrong("the rows have %v output tokens, and the summary %v", output, tokens)
	}
	if number(r["attempts"]) == number(r["offered"]) { // the latency of a retried request is not in one row
		remeasured(sum, rows, wrong)
	}
	return problems
}

// remeasured computes latencies of the summary from the rows.
func remeasured(sum doc, rows []map[string]string, wrong func(format string, args ...any)) {
	const tolerance = 1e-5
	start, end := number(sum.get("window.start_s")), number(sum.get("window.end_s"))
	for _, metric := range []string{"ttft", "tpot", "e2e", "queue"} {
		var n, total, largest float64
		edge := false
		for _, row := range rows {
			arrival, err := cell(row, "arrival_s")
			if row["outcome"] != "completed" || err != nil {
				continue
			}
			edge = edge || math.Abs(arrival-start) < tolerance && start > 0 || math.Abs(arrival-end) < tolerance
			if v, err := cell(row, metric+"_ms"); err == nil && arrival >= start && arrival <= end {
				n, total, largest = n+1, total+v, max(largest, v)
			}
		}
		d, _ := sum.get("latency_ms." + metric).(map[string]any)
		switch {
		case edge: // an instant in a row is rounded
		case n != number(d["n"]):
			wrong("%v rows have a %s in the window of %v to %v s, and the summary has %v", n, metric, start, end, d["n"])
		case n > 0 && math.Abs(total/n-number(d["mean"])) > tolerance*(1+total/n):
			wrong("the mean %s of the rows is %v, and the summary's %v", metric, total/n, d["mean"])
		case n > 0 && math.Abs(largest-number(d["max"])) > tolerance*(1+largest):
			wrong("the largest %s of the rows is %v, and the summary's %v", metric, largest, d["max"])
		}
	}
	gaps(sum, rows, wrong)
}

// gaps compares inter-token latencies with the rows, where the window has all tokens of all requests.
func gaps(sum doc, rows []map[string]string, wrong func(format string, args ...any)) {
	n, mean := number(sum.get("latency_ms.itl.n")), number(sum.get("latency_ms.itl.mean"))
	total, tokens, longest := 0., 0., 0.
	if number(sum.get("requests.in_system_at_end")) > 0 {
		return // they have tokens, but no rows
	}
	for _, row := range rows {
		first, errFirst := cell(row, "client_first_s")
		last, errLast := cell(row, "client_last_s")
		if row["outcome"] != "completed" || errFirst != nil || errLast != nil ||
			last > number(sum.get("window.end_s")) || first < number(sum.get("window.start_s")) {
			return
		}
		output, _ := cell(row, "output_tokens")
		total, tokens, longest = total+1e3*(last-first), tokens+output-1, max(longest, 1e3*(last-first))
	}
	if math.Abs(total-n*mean) > 1e-6*(1+total) {
		wrong("clients wait for %v ms between tokens, and the inter-token latencies add up to %v", total, n*mean)
	}
	// SGLang's loop divides a gap in two where a sequence is retracted whose next token is being computed.
	retracted := 0.
	if strings.Contains(fmt.Sprint(sum["scenario"]), "sglang") {
		retracted = number(sum.get("system.preemptions"))
	}
	if largest := number(sum.get("latency_ms.itl.max")); n > tokens+retracted || largest > longest*(1+1e-9)+1e-6 {
		wrong("%v inter-token latencies up to %v ms, of %v tokens within %v ms", n, largest, tokens, longest)
	}
}

// instants of a request in their order. A request that ends early lacks the later ones.
var instants = []string{"sent_s", "arrival_s", "queued_s", "scheduled_s", "first_token_s", "last_token_s"}

// half is half a unit in the last place of a number in a row.
const half = .5e-6

// times asserts that a row is possible.
func times(row map[string]string, wrong func(format string, args ...any)) {
	bad := func(format string, args ...any) {
		wrong("request %s: "+format+": %v", append(append([]any{row["request"]}, args...), row)...)
	}
	before, name := math.Inf(-1), ""
	for _, column := range instants {
		if v, err := cell(row, column); err == nil {
			if v < before {
				bad("%s is %v, before %s, which is %v", column, v, name, before)
			}
			before, name = v, column
		}
	}
	value := func(column string) float64 {
		v, err := cell(row, column)
		if err != nil {
			return math.NaN()
		}
		if v < 0 || v > 1e12 {
			bad("%s is %v", column, v)
		}
		return v
	}
	first, last := value("client_first_s"), value("client_last_s")
	if last < first {
		bad("the last token reaches the client %v s before the first", first-last)
	}
	if f := value("first_token_s"); first < f {
		bad("a token reaches the client before it exists, at %v", f)
	}
	n, asked := value("output_tokens"), value("asked_tokens")
	if n > asked {
		bad("more tokens than asked")
	}
	if value("cached_tokens") > value("input_tokens") {
		bad("more cached tokens than prompt tokens")
	}
	if ttft, e2e := value("ttft_ms"), value("e2e_ms"); ttft > e2e+half {
		bad("TTFT is above E2E")
	}
	if tpot := value("tpot_ms"); n > 1 && math.Abs(tpot*(n-1)-1e3*(last-first)) > 1e-6*n {
		bad("TPOT is not the mean gap, which is %v ms", 1e3*(last-first)/(n-1))
	}
	if row["outcome"] == "completed" && math.IsNaN(last) {
		bad("completed without a last token")
	}
}

// number is a number of JSON; 0 for null.
func number(v any) float64 {
	f, _ := v.(float64)
	return f
}

// listOf are the maps in a list.
func listOf(sum map[string]any, key string) (all []map[string]any) {
	list, _ := sum[key].([]any)
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

// numbersOf calls a function with each number and its path.
func numbersOf(path string, v any, visit func(path string, v float64)) {
	switch x := v.(type) {
	case float64:
		visit(path, x)
	case map[string]any:
		for key, below := range x {
			numbersOf(join(path, key), below, visit)
		}
	case []any:
		for _, below := range x {
			numbersOf(path+"[]", below, visit)
		}
	}
}

// distributionsOf calls a function with each distribution and its path.
func distributionsOf(path string, v any, visit func(path string, d map[string]any)) {
	switch x := v.(type) {
	case map[string]any:
		if _, ok := x["p99_9"]; ok {
			visit(path, x)
		}
		for key, below := range x {
			distributionsOf(join(path, key), below, visit)
		}
	case []any:
		for _, below := range x {
			distributionsOf(path+"[]", below, visit)
		}
	}
}
