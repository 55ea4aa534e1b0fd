package kv

// Names for tests that compare the tree with the tree of package naive, which imports this one.
type (
	Radix  = radix
	Entry  = treeEntry
	Prefix = treePrefix
)

// NewRadix is newRadix.
var NewRadix = newRadix
