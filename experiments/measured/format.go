package measured

import (
	"fmt"
	"slices"

	"clifftop/experiments/scenario/yamldoc"
)

// format is a Format with its detection and its reader.
type format struct {
	Format
	// is reports whether a file has the format.
	is func(f *file) bool
	// read reads a file that has it. Mistakes are reported with f.fault.
	read func(f *file, r *Result)
}

// formats returns the registry. The first format that fits is taken.
func formats() []format {
	return []format{
		sglangBenchFormat(),
		recordFormat(),
		guideLLMFormat(),
		guideLLMCSVFormat(),
		aiperfFormat(),
		aiperfCSVFormat(),
		aiperfRecordsFormat(),
		genaiPerfFormat(),
		inferencePerfFormat(),
		inferencePerfRequestsFormat(),
		llmperfFormat(),
		llmperfRequestsFormat(),
		inferenceXFormat(),
		dynamoFormat(),
		dynamoIterationsFormat(),
		k6Format(),
		k6PointsFormat(),
		trtllmStatsFormat(),
		vllmBenchFormat(),
		prometheusRangeFormat(),
		prometheusFormat(),
		vllmLogFormat(),
		sglangLogFormat(),
		trtllmLogFormat(),
	}
}

// Formats returns all formats that [Read] reads.
func Formats() []Format {
	var list []Format
	for _, f := range formats() {
		list = append(list, f.Format)
	}
	return list
}

// Recognise returns the format of a file, gzipped or not. JSON that ends early is recognised without a format: [Read]
// says where it ends.
func Recognise(name string, data []byte) (f Format, ok bool) {
	in, err := open(name, data)
	if err != nil {
		return Format{}, false
	}
	k := in.format()
	if k == nil {
		return Format{}, in.broken != nil
	}
	return k.Format, true
}

// format finds the format of the file; nil is none.
func (f *file) format() *format {
	for _, k := range formats() {
		if k.is(f) {
			return &k
		}
	}
	return nil
}

// Read reads a file of any format, gzipped or not. The error is a [yamldoc.Faults] with the places of the mistakes. A
// file with no requests and no state of an engine is an error.
func Read(name string, data []byte) (*Result, error) {
	f, err := open(name, data)
	if err != nil {
		return nil, err
	}
	k := f.format()
	if k == nil {
		if f.broken != nil {
			return nil, yamldoc.Faults{f.broken}
		}
		return nil, yamldoc.Faults{{Where: name, Problem: "this is no known result of a load generator, metrics or " +
			"log (want " +
			"one of clifftop catalog formats)"}}
	}
	r := &Result{Tool: k.Name, File: name}
	if f.broken != nil {
		f.faults = append(f.faults, f.broken)
	} else {
		k.read(f, r)
	}
	if len(f.faults) > 0 {
		return nil, f.faults
	}
	if len(r.Runs) == 0 {
		return nil, yamldoc.Faults{{Where: name, Problem: fmt.Sprintf("no run is in this file of %s (want one or more)",
			k.Name)}}
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		run.complete(r)
		if run.empty() {
			return nil, yamldoc.Faults{{Where: name, Key: run.Name, Problem: fmt.Sprintf("no request completed and "+
				"no metric is known (want a result of %s with completed requests)", k.Name)}}
		}
		if run.Name == "" {
			run.Name = run.Load.describe()
		}
	}
	r.nameRuns()
	return r, nil
}

// Named is a file with its name.
type Named struct {
	Name string
	Data []byte
}

// ReadAll reads several files. Snapshots of metrics become one result, with the window from the first to the last.
func ReadAll(files []Named) ([]*Result, error) {
	var out []*Result
	snapshots := -1
	for _, f := range files {
		kind, ok := Recognise(f.Name, f.Data)
		if ok && kind.Name == prometheusFormat().Name {
			in, err := open(f.Name, f.Data)
			if err != nil {
				return nil, err
			}
			if snapshots >= 0 {
				before := &files[snapshots]
				before.Data = append(append(slices.Clone(before.Data), '\n'), in.text...)
				continue
			}
			files = slices.Clone(files)
			snapshots = slices.IndexFunc(files, func(o Named) bool { return o.Name == f.Name })
			files[snapshots].Data = in.text
			out = append(out, nil)
			continue
		}
		r, err := Read(f.Name, f.Data)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	if snapshots < 0 {
		return out, nil
	}
	r, err := Read(files[snapshots].Name, files[snapshots].Data)
	if err != nil {
		return nil, err
	}
	out[slices.Index(out, nil)] = r
	return out, nil
}

// Choose returns the run with a number, from 1, or a name. Without one, the result must have one run.
func (r *Result) Choose(name string) (*Run, error) {
	for i := range r.Runs {
		if name == r.Runs[i].Name || name == fmt.Sprint(i+1) || name == "" && len(r.Runs) == 1 {
			return &r.Runs[i], nil
		}
	}
	problem := fmt.Sprintf("%d runs are in the file", len(r.Runs))
	if name != "" {
		problem = fmt.Sprintf("no run %q is in the file", yamldoc.Short(name))
	}
	return nil, yamldoc.Faults{{Where: r.File, Problem: problem + " (want --run N)", Hint: "runs: " +
		yamldoc.OneOf(r.names())}}
}

func (r *Result) nameRuns() {
	for i := range r.Runs {
		name := r.Runs[i].Name
		if name == "" {
			name = fmt.Sprintf("run %d", i+1)
		}
		for n := 2; slices.ContainsFunc(r.Runs[:i], func(o Run) bool { return o.Name == name }); n++ {
			name = fmt.Sprintf("%s (%d)", r.Runs[i].Name, n)
		}
		r.Runs[i].Name = name
	}
}

// note adds a remark once.
func (r *Result) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

func (l *Load) describe() string {
	switch {
	case l.Rate != nil:
		return fmt.Sprintf("rate %g", *l.Rate)
	case l.Concurrency != nil:
		return fmt.Sprintf("concurrency %d", *l.Concurrency)
	case l.AtOnce:
		return "all at once"
	}
	return ""
}
