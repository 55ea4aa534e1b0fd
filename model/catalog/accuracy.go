package catalog

import (
	"slices"
	"sync"
)

// Accuracy is the error of simulated runs of one kind against measured ones. Errors are fractions, medians of their
// absolute values over the runs; nil means not measured.
type Accuracy struct {
	// Engine is the measured serving engine, such as vllm. GPU is the catalog's name of the accelerator; it is
	// empty in a record over all GPUs of an Architecture.
	Engine       string `yaml:"engine"`
	GPU          string `yaml:"gpu,omitempty"`
	Architecture string `yaml:"architecture"`
	// MoE means that the models are mixtures of experts, Closed that a fixed number of clients sent the requests.
	MoE    bool `yaml:"moe"`
	Closed bool `yaml:"closed"`
	// Runs is the number of measured runs, Models the models that they used.
	Runs   int      `yaml:"runs"`
	Models []string `yaml:"models,flow"`

	TTFT       *float64 `yaml:"ttft"`
	TPOT       *float64 `yaml:"tpot"`
	E2E        *float64 `yaml:"e2e"`
	Throughput *float64 `yaml:"throughput"`
}

// accuracyFile is the form of accuracy.yaml.
type accuracyFile struct {
	Records []Accuracy `yaml:"records"`
}

var loadAccuracy = sync.OnceValue(func() []Accuracy {
	var f accuracyFile
	table.Read("accuracy", &f)
	return f.Records
})

// Accuracies returns all records.
func Accuracies() []Accuracy { return slices.Clone(loadAccuracy()) }

// AccuracyOf returns the record of a GPU, or else that of its architecture, whose GPU is empty. ok is false if
// there is none.
func AccuracyOf(engine, gpu, architecture string, moe, closed bool) (Accuracy, bool) {
	var found Accuracy
	ok := false
	for _, a := range loadAccuracy() {
		if a.Engine != engine || a.MoE != moe || a.Closed != closed || a.Architecture != architecture {
			continue
		}
		if a.GPU == gpu {
			return a, true
		}
		if a.GPU == "" {
			found, ok = a, true
		}
	}
	return found, ok
}
