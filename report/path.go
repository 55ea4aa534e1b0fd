package report

import "strings"

// JoinPath appends a name to a dotted path.
func JoinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// LastKey returns the part of a key after its last dot.
func LastKey(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }
