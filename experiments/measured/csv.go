package measured

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
)

// sortedKeys are the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// rows reads CSV. Rows may have different numbers of columns.
func (f *file) rows() [][]string {
	d := csv.NewReader(bytes.NewReader(f.text))
	d.FieldsPerRecord, d.LazyQuotes = -1, true
	rows, err := d.ReadAll()
	if err != nil {
		f.fault(f.name, "", "the CSV is damaged: %v (want the whole file)", err)
		return nil
	}
	return rows
}

// cell reads a number of a CSV file; nil for an empty cell.
func (f *file) cell(name, text string) *float64 {
	text = strings.TrimSpace(text)
	if text == "" || strings.EqualFold(text, "n/a") || strings.EqualFold(text, "nan") {
		return nil
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil || !(x >= 0 && x < 1e300) {
		f.fault(f.name, name, "%q is not allowed (want a number, 0 or more)", yamldoc.Short(text))
		return nil
	}
	return &x
}

// aiperfCSVFormat is profile_export_aiperf.csv, and that of genai-perf: blocks with the columns Metric,avg,min,… and
// Metric,Value. The unit stands in the name.
func aiperfCSVFormat() format {
	return format{
		Format: Format{Name: "aiperf-csv", Layout: "CSV of aiperf or genai-perf (profile_export_aiperf.csv)",
			Source: "https://github.com/ai-dynamo/aiperf"},
		is: func(f *file) bool {
			return bytes.HasPrefix(f.text, []byte("Metric,avg")) || bytes.HasPrefix(f.text, []byte("Metric,Value\n"))
		},
		read: readAIPerfCSV,
	}
}

// readAIPerfCSV turns the rows into the metrics of the JSON report.
func readAIPerfCSV(f *file, r *Result) {
	names := map[string]string{"Request Latency": "request_latency", "Time to First Token": "time_to_first_token",
		"Inter Token Latency": "inter_token_latency", "Output Sequence Length": "output_sequence_length",
		"Input Sequence Length": "input_sequence_length", "Benchmark Duration": "benchmark_duration",
		"Request Throughput": "request_throughput", "Request Count": "request_count",
		"Output Token Throughput": "output_token_throughput", "Time To First Token": "time_to_first_token",
		"Error Request Count": "error_request_count"}
	o := object{map[string]any{}, f.name, "", f}
	var header []string
	for _, row := range f.rows() {
		if len(row) < 2 {
			continue
		}
		if row[0] == "Metric" || row[0] == "Endpoint" {
			header = row
			continue
		}
		title, unit, _ := strings.Cut(strings.TrimSuffix(row[0], ")"), " (")
		key, known := names[title]
		if !known || len(header) == 0 || header[0] != "Metric" {
			continue
		}
		m := map[string]any{"unit": unit}
		for i, column := range header[1:] {
			if i+1 < len(row) {
				if column == "Value" {
					column = "avg"
				}
				if x := f.cell(row[0], row[i+1]); x != nil {
					m[column] = *x
				}
			}
		}
		o.m[key] = m
	}
	r.Runs = []Run{o.nvidiaMetrics(r)}
}

// guideLLMCSVFormat is benchmarks.csv of GuideLLM from 0.4 on: three rows of headers (group, name, unit) and one row
// per benchmark.
// Source: vllm-project/guidellm src/guidellm/benchmark/outputs/csv.py.
func guideLLMCSVFormat() format {
	return format{
		Format: Format{Name: "guidellm-csv", Layout: "CSV report of guidellm benchmark run from 0.4 on " +
			"(benchmarks.csv)",
			Source: "https://github.com/vllm-project/guidellm"},
		is: func(f *file) bool {
			head, _, _ := bytes.Cut(f.text, []byte("\n"))
			return bytes.HasPrefix(head, []byte("Run Info,")) && bytes.Contains(head, []byte("Request Latency"))
		},
		read: readGuideLLMCSV,
	}
}

func readGuideLLMCSV(f *file, r *Result) {
	rows := f.rows()
	if len(rows) < 4 || len(rows[0]) != len(rows[1]) || len(rows[1]) != len(rows[2]) {
		f.fault(f.name, "", "the three rows of headers do not have equal columns (want group, name and unit)")
		return
	}
	for i, row := range rows[3:] {
		if len(row) != len(rows[0]) {
			f.fault(fmt.Sprintf("%s: row %d", f.name, i+4), "", "%d columns are not allowed (want %d, as in the "+
				"header)",
				len(row),
				len(rows[0]))
			return
		}
		cells := guideLLMCells{f: f, rows: rows, row: row}
		run := Run{TTFT: cells.statistics("Time to First Token", 1), E2E: cells.statistics("Request Latency", 1e3),
			TPOT:      cells.statistics("Inter Token Latency", 1),
			Completed: whole(cells.number("Request Counts", "Successful")),
			Sent:      whole(cells.number("Request Counts", "Total")), Name: cells.text("Benchmark", "Strategy"),
			RequestsPerS: cells.number("Server Throughput", "Successful Requests/Sec Mean"),
			Duration:     seconds64(or(cells.number("Timings", "Duration Sec"), 0))}
		run.Input.Statistics = cells.statistics("Token Metrics", 1, "Input")
		run.Output.Statistics = cells.statistics("Token Metrics", 1, "Output")
		r.note("TPOT is GuideLLM's inter_token_latency_ms, which weights requests by their tokens")
		r.Runs = append(r.Runs, run)
	}
}

// guideLLMCells finds cells by their group and the words of their name and unit.
type guideLLMCells struct {
	f    *file
	rows [][]string
	row  []string
}

// text is the first cell of the group with all words.
func (c *guideLLMCells) text(group string, words ...string) string {
	for i := range c.row {
		name := strings.ToLower(c.rows[1][i] + " " + c.rows[2][i])
		missing := slices.ContainsFunc(words,
			func(w string) bool { return !strings.Contains(name, strings.ToLower(w)) })
		if strings.EqualFold(c.rows[0][i], group) && !missing {
			return c.row[i]
		}
	}
	return ""
}

func (c *guideLLMCells) number(group, words string) *float64 {
	return c.f.cell(group, c.text(group, strings.Fields(words)...))
}

// statistics reads the columns of successful requests.
func (c *guideLLMCells) statistics(group string, by float64, words ...string) Statistics {
	at := func(name string) *float64 {
		return times(c.f.cell(group, c.text(group, append([]string{"successful", name}, words...)...)), by)
	}
	return Statistics{Mean: at("mean"), P50: at("median"), Std: at("std")}
}
