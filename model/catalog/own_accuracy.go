package catalog

import (
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
)

// OwnAccuracy has the errors of a user's own measured runs, for the scenario key accuracy.
type OwnAccuracy struct {
	// Clifftop is the version of the program that simulated the runs.
	Clifftop string      `yaml:"clifftop"`
	Source   string      `yaml:"source"`
	Kinds    []OwnErrors `yaml:"kinds"`
}

// OwnErrors are the errors of own runs of one kind: by metric, measured over simulated, less 1.
type OwnErrors struct {
	Engine string   `yaml:"engine"`
	Load   string   `yaml:"load"`
	MoE    bool     `yaml:"moe"`
	GPUs   []string `yaml:"gpus,flow"` // that the runs used
	Runs   int      `yaml:"runs"`
	// Names identify runs that clifftop verify added, so that none counts twice.
	Names  []string             `yaml:"names,omitempty"`
	Errors map[string][]float64 `yaml:"errors"`
}

// Write writes the record as a file.
func (o *OwnAccuracy) Write(w io.Writer) error {
	text, err := yaml.Marshal(o)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "# Errors of own runs: measured over simulated, less 1. Written by clifftop validate "+
		"--write.\n%s",
		text)
	return err
}

// ReadOwnAccuracy reads a file that [OwnAccuracy.Write] wrote with this version of the program.
func ReadOwnAccuracy(file string, data []byte, version string) (*OwnAccuracy, error) {
	var head struct {
		Clifftop string `yaml:"clifftop"`
	}
	const write = "(write it with clifftop validate --reference RUNS --write %s)"
	if err := yaml.Unmarshal(data, &head); err != nil || head.Clifftop == "" {
		return nil, fmt.Errorf("%s is not a record of own runs "+write, file, file)
	}
	if head.Clifftop != version {
		return nil, fmt.Errorf("%s is of Clifftop %s, but this is %s "+write, file, head.Clifftop, version, file)
	}
	var o OwnAccuracy
	if err := decode(file, data, &o); err != nil {
		return nil, err
	}
	for _, k := range o.Kinds {
		for metric, list := range k.Errors {
			for _, e := range list {
				if !(e > -1 && e < 1e9) {
					return nil, fmt.Errorf("%s: %s has the error %g (want measured over simulated, less 1, above -1)",
						file, metric, e)
				}
			}
		}
	}
	return &o, nil
}

// Of returns the errors of a kind; ok is false if there are none.
func (o *OwnAccuracy) Of(engine, load string, moe bool) (k OwnErrors, ok bool) {
	if o == nil {
		return k, false
	}
	for _, k := range o.Kinds {
		if k.Engine == engine && k.Load == load && k.MoE == moe {
			return k, true
		}
	}
	return k, false
}
