package experiments

import (
	_ "embed"
	"slices"
)

//go:embed scenario.schema.json
var schema []byte

// Schema is the JSON Schema of scenario files, for editors.
func Schema() []byte { return slices.Clone(schema) }
