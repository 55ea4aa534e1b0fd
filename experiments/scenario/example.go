package scenario

import (
	_ "embed"
	"slices"
)

//go:embed example.yaml
var example []byte

// Example is a scenario with comments, to start from.
func Example() []byte { return slices.Clone(example) }
