package catalog

import (
	_ "embed"
	"fmt"
	"sync"
)

// Accuracy says how far simulated runs of one kind were from measured ones. Errors are fractions, the medians of
// their sizes over the runs; nil where nothing was measured to tell.
type Accuracy struct {
	// Engine is the serving engine that was measured, such as vllm. GPU is the catalogue's name of the
	// accelerator; it is empty in a record over all those of an Architecture.
	Engine       string `yaml:"engine"`
	GPU          string `yaml:"gpu,omitempty"`
	Architecture string `yaml:"architecture"`
	// MoE says that the models are mixtures of experts; Closed that a fixed number of clients sent the requests.
	MoE    bool `yaml:"moe"`
	Closed bool `yaml:"closed"`
	// Runs is the number of measured runs, and Models are those that ran.
	Runs   int      `yaml:"runs"`
	Models []string `yaml:"models,flow"`

	TTFT       *float64 `yaml:"ttft"`
	TPOT       *float64 `yaml:"tpot"`
	E2E        *float64 `yaml:"e2e"`
	Throughput *float64 `yaml:"throughput"`
}

//go:embed accuracy.yaml
var accuracyFile []byte

var loadAccuracy = sync.OnceValues(func() ([]Accuracy, error) {
	var f struct {
		Records []Accuracy `yaml:"records"`
	}
	if err := decode("accuracy.yaml", accuracyFile, &f); err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	return f.Records, nil
})

// Accuracies lists what is known of the errors of simulated runs.
func Accuracies() []Accuracy {
	all, _ := loadAccuracy() // a broken file fails the tests
	return append([]Accuracy(nil), all...)
}

// AccuracyOf finds the record of runs on a GPU, or else that of its architecture, whose GPU is empty.
func AccuracyOf(engine, gpu, architecture string, moe, closed bool) (Accuracy, bool) {
	var found Accuracy
	ok := false
	for _, a := range Accuracies() {
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
