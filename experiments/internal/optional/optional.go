// Package optional works with pointers that are nil where a key of a scenario is not given.
package optional

// Value is what p points to, or zero.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// Of points to v, or is nil where v is zero.
func Of[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// Default gives *p the value v where it is nil.
func Default[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

// Set gives *to the value that given points to, if there is one.
func Set[T any](to, given *T) {
	if given != nil {
		*to = *given
	}
}
