package validation

import (
	"strconv"
	"strings"

	"clifftop/internal/pattern"
)

// flag is an option of a launch command, or a line of its configuration file.
type flag struct{ section, key, value string }

// flags are the options of an engine, in order. Keys are in lower case, with underscores.
type flags []flag

var (
	commandFlag = pattern.New(`--?([A-Za-z][A-Za-z0-9_.-]*)(?:[= ]+('[^']*'|"[^"]*"|\{.*?\}+|[^-\s|][^\s|]*))?`)
	configLine  = pattern.New(`^([A-Za-z][A-Za-z0-9_.-]*): *(.*)$`)
)

// parseFlags reads the options of a launch command and, after |, the lines of a configuration file, which semicolons
// separate. A line without a value begins a section.
func parseFlags(text string) flags {
	command, file, _ := strings.Cut(text, " | ")
	if !strings.Contains(command, "-") && strings.Contains(command, ":") {
		command, file = "", text
	}
	plain := func(key string) string { return strings.ToLower(strings.ReplaceAll(key, "-", "_")) }
	var list flags
	for _, m := range commandFlag.Get().FindAllStringSubmatch(" "+command, -1) {
		list = append(list, flag{key: plain(m[1]), value: strings.Trim(m[2], `'"`)})
	}
	section := ""
	for _, line := range strings.Split(file, ";") {
		m := configLine.Get().FindStringSubmatch(strings.TrimSpace(line))
		switch {
		case m == nil:
		case m[2] == "":
			section = plain(m[1])
		default:
			list = append(list, flag{section, plain(m[1]), strings.Trim(m[2], `'" `)})
		}
	}
	return list
}

// get finds the first option with one of the keys. A key of a section is written section.key. The end of a section is
// not known, so that other keys are looked for in all of them.
func (list flags) get(keys ...string) (value string, ok bool) {
	for _, key := range keys {
		section, name, nested := strings.Cut(key, ".")
		if !nested {
			section, name = "", key
		}
		for _, f := range list {
			if f.key == name && (section == "" || f.section == section) {
				return f.value, true
			}
		}
	}
	return "", false
}

// has reports whether an option is on: given without a value, or with one that means on.
func (list flags) has(keys ...string) bool {
	v, ok := list.get(keys...)
	v = strings.ToLower(v)
	return ok && v != "false" && v != "0" && v != "off"
}

// number finds a whole number.
func (list flags) number(keys ...string) *int {
	v, ok := list.get(keys...)
	n, err := strconv.Atoi(v)
	if !ok || err != nil || n < 0 {
		return nil
	}
	return &n
}

func (list flags) fraction(keys ...string) *float64 {
	v, ok := list.get(keys...)
	x, err := strconv.ParseFloat(v, 64)
	if !ok || err != nil || x < 0 {
		return nil
	}
	return &x
}

// fill gives a cell that is empty the value of an option.
func fill[T any](cell **T, value *T) {
	if *cell == nil {
		*cell = value
	}
}

// readFlags takes from the launch script what the row's cells leave open. The format of the KV cache is the script's
// in any case.
func (r normaliser) readFlags() {
	r.Launch = parseFlags(r.EngineFlags)
	o := r.Launch
	if len(o) == 0 {
		return
	}
	if v, ok := o.get("kv_cache_dtype", "kv_cache_config.dtype"); ok && !strings.EqualFold(v, "auto") {
		r.KVDtype = v
	}
	fill(&r.MaxNumSeqs, o.number("max_num_seqs", "max_running_requests"))
	fill(&r.MaxNumBatchedTokens, o.number("max_num_batched_tokens"))
	fill(&r.MaxNumTokens, o.number("max_num_tokens"))
	fill(&r.MaxModelLen, o.number("max_model_len", "max_seq_len", "context_length"))
	fill(&r.BlockSize, o.number("block_size", "page_size", "tokens_per_block"))
	fill(&r.GPUMemUtil, o.fraction("gpu_memory_utilization"))
	fill(&r.ChunkedPrefillSize, o.number("chunked_prefill_size"))
	fill(&r.MaxPrefillTokens, o.number("max_prefill_tokens"))
	fill(&r.RecvInterval, o.number("scheduler_recv_interval"))
	fill(&r.StreamInterval, o.number("stream_interval"))
	fill(&r.ContinuousDecodes, o.number("num_continuous_decode_steps"))
	fill(&r.TP, o.number("tensor_parallel_size", "tp_size"))
	fill(&r.EP, o.number("ep_size", "expert_parallel_size"))
	if r.EP == nil && o.has("enable_expert_parallel") {
		r.EP = given(or(r.TP, 1) * or(r.DP, 1))
	}
	for _, t := range []struct {
		cell    *string
		on, off []string
	}{
		{&r.PrefixCaching, []string{"enable_prefix_caching", "kv_cache_config.enable_block_reuse"},
			[]string{"no_enable_prefix_caching", "disable_radix_cache"}},
		{&r.ChunkedPrefill, []string{"enable_chunked_prefill"}, []string{"no_enable_chunked_prefill"}},
		{&r.AsyncScheduling, []string{"async_scheduling"}, []string{"no_async_scheduling", "disable_overlap_schedule",
			"disable_overlap_scheduler"}},
		{&r.DPAttention, []string{"enable_dp_attention", "enable_attention_dp"}, nil},
	} {
		_, said := o.get(t.on...)
		switch {
		case *t.cell != "":
		case len(t.off) > 0 && o.has(t.off...), said && !o.has(t.on...):
			*t.cell = "off"
		case said:
			*t.cell = "on"
		}
	}
}
