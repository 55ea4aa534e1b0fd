// Package yamldoc reads YAML into a tree of nodes with places, and decodes the tree into Go structs. Every fault
// names the place, the key, what was found and what to write instead. Start with [Parse] and [Decoder.Value].
package yamldoc
