package experiments

import (
	_ "embed"
	"slices"
)

//go:embed scenario.schema.json
var schemaText []byte

// Schema is the JSON Schema of scenario files, for editors.
func Schema() []byte { return slices.Clone(schemaText) }
