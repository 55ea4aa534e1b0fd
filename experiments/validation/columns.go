package validation

import (
	"encoding/csv"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"clifftop/internal/input"
	"clifftop/internal/pattern"
)

// column is where the cell of a column goes.
type column struct {
	name  string
	index []int // of the field, for reflect
	want  bool
	scale float64 // that a number is multiplied by; 0 is 1
}

func schema() (names []string, byName map[string]column) {
	byName = map[string]column{}
	var add func(t reflect.Type, prefix string, index []int)
	add = func(t reflect.Type, prefix string, index []int) {
		for i := range t.NumField() {
			f := t.Field(i)
			tag, want := strings.CutSuffix(f.Tag.Get("csv"), ",want")
			at := append(slices.Clone(index), i)
			switch {
			case tag == "-":
			case f.Type.Kind() == reflect.Struct:
				add(f.Type, prefix+tag, at)
			default:
				names = append(names, prefix+tag)
				byName[prefix+tag] = column{name: prefix + tag, index: at, want: want}
			}
		}
	}
	add(reflect.TypeFor[Row](), "", nil)
	return names, byName
}

// columns are the names of the columns that are read, and of those that must be there.
func columns() (all, required []string) {
	all, byName := schema()
	for _, name := range all {
		if byName[name].want {
			required = append(required, name)
		}
	}
	return all, required
}

// otherNames are the columns that have other names in results of InferenceX, of vLLM's and SGLang's benchmarks,
// GuideLLM and inference-perf.
var otherNames = map[string]string{
	"id": "run_id", "hw": "gpu", "hardware": "gpu", "gpu_name": "gpu", "gpu_type": "gpu", "accelerator": "gpu",
	"framework": "engine", "backend": "engine", "inference_engine": "engine",
	"version": "engine_version", "framework_version": "engine_version",
	"model_id": "model", "model_name": "model", "precision": "weight_dtype", "dtype": "weight_dtype",
	"quantization": "weight_dtype", "kv_cache_dtype": "kv_dtype",
	"num_gpus": "n_gpus", "gpus": "n_gpus", "tensor_parallel_size": "tp", "tp_size": "tp",
	"pipeline_parallel_size": "pp", "pp_size": "pp", "data_parallel_size": "dp", "dp_size": "dp",
	"expert_parallel_size": "ep", "ep_size": "ep",
	"gpu_memory_utilization": "gpu_mem_util", "max_running_requests": "max_num_seqs", "max_batch_size": "max_num_seqs",
	"scheduler_recv_interval": "recv_interval", "enable_prefix_caching": "prefix_caching",
	"enable_chunked_prefill": "chunked_prefill", "spec_decoding": "spec_method", "mtp": "spec_method",
	"mtp_mode": "spec_method", "conc": "concurrency", "max_concurrency": "concurrency", "num_concurrent": "concurrency",
	"num_users": "users", "request_rate": "rate_rps", "rate": "rate_rps", "rps": "rate_rps", "qps": "rate_rps",
	"duration": "duration_s", "num_prompts": "n_requests", "num_requests": "n_requests", "completed": "n_requests",
	"isl": "input_tokens_mean", "input_len": "input_tokens_mean", "osl": "output_tokens_nominal",
	"output_len": "output_tokens_nominal", "output_throughput": "output_tok_per_s",
	"output_token_throughput": "output_tok_per_s", "request_throughput": "req_per_s",
	"output_tput_per_gpu": "output_tok_per_s_per_gpu", "run_date": "date",
}

// latencyName is a latency as benchmarks write it: mean_ttft_ms, or median_e2el in seconds.
var latencyName = pattern.New(`^(mean|avg|median|p50|p90|p95|p99)_(ttft|tpot|itl|e2e|e2el|e2e_latency)(_ms|_s|)$`)

// columnNamed finds a column by its name here or elsewhere.
func columnNamed(head string, byName map[string]column) (column, bool) {
	if c, ok := byName[head]; ok {
		return c, true
	}
	name := strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(head))
	if other := otherNames[name]; other != "" {
		name = other
	}
	scale := 1.0
	if m := latencyName.Get().FindStringSubmatch(name); m != nil {
		statistic := map[string]string{"avg": "mean", "median": "p50"}[m[1]]
		if statistic == "" {
			statistic = m[1]
		}
		if m[3] != "_ms" { // InferenceX's are in seconds
			scale = 1000
		}
		kind := m[2]
		if strings.HasPrefix(kind, "e2e") {
			kind = "e2e"
		}
		name = kind + "_" + statistic + "_ms"
	}
	c, ok := byName[name]
	c.scale = scale
	return c, ok
}

// sidecar is the file of launch options beside a file of measured runs: NAME-flags.csv beside NAME.csv. Its rows have
// the run_id of a run.
func sidecar(path string) string {
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "-flags" + ext
}

// readSidecar reads the cells of the launch options beside a file, by run and column; there may be none.
func readSidecar(path string) (map[string]map[string]string, error) {
	name := sidecar(path)
	f, err := input.Open(name)
	if err != nil {
		return nil, nil // most files have none
	}
	defer f.Close()
	in := csv.NewReader(f)
	in.FieldsPerRecord = -1
	head, err := in.Read()
	if err != nil || !slices.Contains(head, "run_id") {
		return nil, readFault(name, "line 1: no column run_id, which says whose launch options a row has")
	}
	runs := map[string]map[string]string{}
	for {
		cells, err := in.Read()
		switch {
		case errors.Is(err, io.EOF):
			return runs, nil
		case err != nil:
			return nil, readFault(name, csvProblem(err))
		}
		row := map[string]string{}
		for i, cell := range cells[:min(len(cells), len(head))] {
			row[head[i]] = strings.TrimSpace(cell)
		}
		runs[row["run_id"]] = row
	}
}

// merge fills the row's empty cells from its launch options.
func (r *Row) merge(cells map[string]string, byName map[string]column) {
	v := reflect.ValueOf(r).Elem()
	names, _ := columns()
	for _, name := range names {
		cell := cells[name]
		if field := v.FieldByIndex(byName[name].index); cell != "" && field.IsZero() {
			r.set(byName[name], field, cell)
		}
	}
}
