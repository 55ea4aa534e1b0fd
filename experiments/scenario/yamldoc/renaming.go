package yamldoc

import (
	"fmt"
	"reflect"
	"slices"
)

// Renaming is an old name in a file of a key or a value that has a new name.
type Renaming struct {
	At       Place
	Key      string // dotted key, with its new name
	Old, New string
}

func (r Renaming) String() string {
	at := ""
	if r.At.Line > 0 { // of a file, not of a flag
		at = fmt.Sprintf(" line %d:", r.At.Line)
	}
	return fmt.Sprintf("%s:%s %s is now called %s; the old name works in this release only", r.Key, at, r.Old, r.New)
}

// renameKeys returns map n with the current names of keys. The tag was of a struct field is the old name of its key.
func (d *Decoder) renameKeys(n *Node, key string, parts ...reflect.Value) *Node {
	renamed := n
	for _, part := range parts {
		if !part.IsValid() {
			continue
		}
		for _, f := range Fields(part.Type()) {
			old, now := f.Tag.Get("was"), Key(f)
			if old == "" || n.Get(old) == nil || n.Get(now) != nil {
				continue
			}
			if renamed == n {
				renamed = new(*n)
				renamed.Fields = slices.Clone(n.Fields)
			}
			i := slices.IndexFunc(n.Fields, func(x Field) bool { return x.Name == old })
			renamed.Fields[i].Name = now
			d.Renamed = append(d.Renamed, Renaming{n.Fields[i].At, Join(key, now), old, now})
		}
	}
	return renamed
}
