package iterations

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/scenario"
	"clifftop/internal/duplicate"
	"clifftop/internal/input"
	"clifftop/internal/pattern"
	"clifftop/model"
)

// File is a file of measured iterations.
type File struct {
	// Name of the run: the name of the file without folder and extension.
	Name       string
	Iterations []model.Iteration
	// Settings are the configuration from the list of runs; nil if there is none.
	Settings []scenario.Setting
	// Notes say how the list of runs was understood.
	Notes []string

	fuse *bool // all-reduces and norms are one kernel; nil if the release decides
}

// ListName is the name of the list of runs beside files of iterations.
const ListName = "runs.csv"

// Extensions of files of iterations.
var extensions = []string{".csv.gz", ".csv"}

func runName(path string) string {
	name := filepath.Base(path)
	for _, e := range extensions {
		if n, ok := strings.CutSuffix(name, e); ok {
			return n
		}
	}
	return name
}

// Open reads a file of measured iterations, or all files that the list of runs in a folder names. Errors have one
// line and name the file.
func Open(path string) ([]*File, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return openFolder(path)
	}
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	list, err := readList(filepath.Join(filepath.Dir(path), ListName))
	if os.IsNotExist(err) || errors.As(err, new(otherTable)) {
		return []*File{f}, nil
	}
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if r["run"] == f.Name {
			f.configure(r)
		}
	}
	return []*File{f}, nil
}

func openFolder(folder string) ([]*File, error) {
	name := filepath.Join(folder, ListName)
	list, err := readList(name)
	if errors.As(err, new(otherTable)) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s (want a folder with a list of runs, or files)", name,
			scenario.PlainFileError(err))
	}
	var files []*File
	for _, r := range list {
		path := filepath.Join(folder, r["run"])
		for _, e := range extensions {
			if _, err := os.Stat(path + e); err == nil {
				path += e
				break
			}
		}
		f, err := openFile(path)
		if err != nil {
			return nil, err
		}
		f.configure(r)
		files = append(files, f)
	}
	return files, nil
}

func openFile(path string) (*File, error) {
	data, err := input.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", path, scenario.PlainFileError(err))
	}
	all, err := model.ReadIterations(path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return &File{Name: runName(path), Iterations: all}, nil
}

// listedRun is a row of the list of runs, by column.
type listedRun map[string]string

// readList reads a list of runs. If the file cannot be opened, it returns the error of the file system.
func readList(path string) ([]listedRun, error) {
	data, err := input.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := csv.NewReader(bytes.NewReader(data))
	rows, err := c.ReadAll()
	if err != nil || len(rows) < 2 {
		return nil, fmt.Errorf("%s: no rows can be read (want a line of column names and a row for each file): %w",
			path, err)
	}
	head := rows[0]
	if column, twice := duplicate.Column(head); twice {
		return nil, fmt.Errorf("%s:1: column %.40q is there twice (want each column once)", path, column)
	}
	for _, want := range []string{"run", "model", "gpu"} {
		if !slices.Contains(head, want) {
			return nil, otherTable{path, want}
		}
	}
	var list []listedRun
	for _, row := range rows[1:] {
		r := listedRun{}
		for i, column := range head {
			r[column] = strings.TrimSpace(row[i])
		}
		list = append(list, r)
	}
	return list, nil
}

// otherTable is the error of a file that is no list of runs. A file beside may have the name for another reason.
type otherTable struct{ path, column string }

func (e otherTable) Error() string {
	return fmt.Sprintf("%s:1: column %s is missing (want run, model, gpu, and the configuration, such as tp)", e.path,
		e.column)
}

// keys are the scenario's keys of columns.
var keys = []struct{ column, key string }{
	{"model", "model"}, {"gpu", "gpu"}, {"engine", "engine.policy"},
	{"tp", "deployment.tensor_parallel_size"}, {"pp", "deployment.pipeline_parallel_size"},
	{"dp", "deployment.data_parallel_size"}, {"ep", "deployment.expert_parallel_size"},
	{"dtype", "deployment.dtype"}, {"weight_dtype", "deployment.dtype"},
	{"kv_cache_dtype", "deployment.kv_cache_dtype"}, {"kv_dtype", "deployment.kv_cache_dtype"},
	{"max_num_batched_tokens", "engine.max_num_batched_tokens"}, {"max_num_seqs", "engine.max_num_seqs"},
}

// releaseNumber is the number in the name of a release.
var releaseNumber = pattern.New(`^v?([0-9]+\.[0-9]+)`)

// configure takes the configuration from a row of the list of runs.
func (f *File) configure(r listedRun) {
	limits := f.believes(r)
	// The prefix cache does not change the time of an iteration, and models with recurrent layers restrict it.
	f.Settings = []scenario.Setting{{Key: "engine.enable_prefix_caching", Value: "false"}}
	for _, k := range keys {
		value := strings.ToLower(r[k.column])
		limit := strings.HasPrefix(k.column, "max_num")
		if value == "" || limit && !limits {
			continue
		}
		sixteen := false
		switch value {
		case "bfloat16", "bf16":
			value, sixteen = "bf16", true
		case "float16", "half", "fp16":
			value, sixteen = "fp16", true
		}
		if sixteen && k.column == "dtype" { // the engine's format of activations; weights have that of the model
			continue
		}
		f.Settings = append(f.Settings, scenario.Setting{Key: k.key, Value: value, Flag: ListName + ": " + k.column})
	}
	if m := releaseNumber.Get().FindStringSubmatch(r["engine_version"]); m != nil && r["engine"] == "vllm" {
		f.Settings = append(f.Settings, scenario.Setting{Key: "engine.version", Value: "vllm-" + m[1],
			Flag: ListName + ": engine_version"})
	}
	if fuse, err := strconv.ParseBool(r["allreduce_rms_fusion"]); err == nil {
		f.fuse = &fuse
	}
}

// believes reports whether the listed limits agree with the iterations. If not, the dump of the configuration was
// another one, and the engine's defaults apply.
func (f *File) believes(r listedRun) bool {
	limit, err := strconv.Atoi(r["max_num_batched_tokens"])
	if err != nil {
		return true
	}
	most := 0
	for i := range f.Iterations {
		it := &f.Iterations[i]
		most = max(most, it.Batch.Decodes+it.PrefillTokens())
	}
	if most > limit {
		f.Notes = append(f.Notes, fmt.Sprintf("max_num_batched_tokens is %d in %s, but an iteration has %d tokens: "+
			"the engine's default limits are used", limit, ListName, most))
		return false
	}
	return true
}
