package workload

import (
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"clifftop/internal/testenv"
)

// TestPresets builds every preset. A preset that lacks a value names it in its error, and works once the value is set.
func TestPresets(t *testing.T) {
	list, err := Presets()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 20 {
		t.Errorf("%d presets", len(list))
	}
	for _, p := range list {
		if p.Title == "" || p.Source == "" || p.Provenance == "" {
			t.Errorf("%s: title, source or provenance is missing", p.Name)
		}
		s := p.Spec
		s.Requests = 10
		err := s.Validate()
		if (err != nil) != (len(p.Needs()) > 0) {
			t.Errorf("%s: needs %v, error %v", p.Name, p.Needs(), err)
		}
		for _, key := range p.Needs() {
			if !strings.Contains(err.Error(), "workload."+key+": ") {
				t.Errorf("%s: no word of %s in %v", p.Name, key, err)
			}
			switch key {
			case "arrivals":
				s.Arrivals = []Phase{{Process: "poisson", Rate: 1}}
			case "input":
				s.Input = LengthsSpec{Distribution: "fixed", Value: 10}
			case "output":
				s.Output = LengthsSpec{Distribution: "fixed", Value: 10}
			}
		}
		in, out, err := s.MeanTokens()
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		// Straight lines between few quantiles bend the mean, most where the last one is far out.
		limit := 0.15
		if p.Provenance == "fitted-partial" {
			limit = 0.65
		}
		if p.Input.Mean > 0 && (math.Abs(in/p.Input.Mean-1) > limit || math.Abs(out/p.Output.Mean-1) > limit) {
			t.Errorf("%s: means %.1f and %.1f, in the data %.1f and %.1f", p.Name, in, out, p.Input.Mean, p.Output.Mean)
		}
		if len(drain(mustNew(t, s, 1), 20, 0)) != 10 {
			t.Errorf("%s: not 10 requests", p.Name)
		}
	}
}

func TestFindPreset(t *testing.T) {
	p, err := FindPreset("Chat-Azure23")
	if err != nil || p.Spec.Rate() != 5.53 || p.Spec.Arrivals[0].Process != "cox" || p.Judgement() {
		t.Fatalf("%+v, %v", p, err)
	}
	for name, want := range map[string]string{
		"chat-azure22": `workload.preset: "chat-azure22" is not known (want chat-azure23`,
		"azure":        "code-azure23",
		"zzz":          "want one of chat-azure23, code-azure23",
	} {
		if _, err := FindPreset(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPresetsAgainstTraces compares samples of the fitted presets with the rows they were fitted to.
func TestPresetsAgainstTraces(t *testing.T) {
	dir := testenv.Traces(t)
	for name, file := range map[string]string{"chat-azure23": "conv", "code-azure23": "code"} {
		rows := readLengths(t, filepath.Join(dir, "AzureLLMInferenceTrace_"+file+".csv.gz"))
		p, err := FindPreset(name)
		if err != nil {
			t.Fatal(err)
		}
		in, err := p.Spec.Input.Lengths("input")
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Independent.Lengths("output")
		if err != nil {
			t.Fatal(err)
		}
		var f fieldFaults
		joint := p.Spec.Output.givenInput("output", &f).Marginal(in)
		inputs, outputs := map[int32]int{}, map[int32]int{}
		for _, r := range rows {
			inputs[r[0]]++
			outputs[r[1]]++
		}
		n := len(rows)
		ksIn, ksOut, ksJoint := distance(inputs, n, in), distance(outputs, n, out), distance(outputs, n, joint)
		t.Logf("%s: KS input %.4f (stated %.4f), output %.4f (stated %.4f), output given input %.4f",
			name, ksIn, p.Input.KS, ksOut, p.Output.KS, ksJoint)
		if math.Abs(ksIn-p.Input.KS) > 0.0025 || math.Abs(ksOut-p.Output.KS) > 0.0025 || ksJoint > 0.06 {
			t.Errorf("%s: the laws are not those of the trace", name)
		}
	}
}

func readLengths(t *testing.T, path string) (rows [][2]int32) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records[1:] {
		in, _ := strconv.Atoi(r[1])
		out, _ := strconv.Atoi(r[2])
		rows = append(rows, [2]int32{int32(in), int32(out)})
	}
	return rows
}

// TestFilesBearNames finds every preset by its file name, equal to the one in the list of all presets.
func TestFilesBearNames(t *testing.T) {
	all, err := Presets()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range all {
		if got, err := FindPreset(want.Name); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: found %q, %v", want.Name, got.Name, err)
		}
	}
}
