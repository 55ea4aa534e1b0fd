// Package faults collects the errors of a validation, so that one run reports all of them.
package faults

import (
	"cmp"
	"errors"
	"fmt"
	"math"
)

// List collects errors in the order in which they are found. The zero List is empty and ready to use.
type List struct {
	// Prefix begins the text of every error that the methods of List make, such as "connector: ".
	Prefix string
	errs   []error
}

// Add appends errors and skips nil. The parts of a joined error are added one by one.
func (l *List) Add(errs ...error) {
	for _, err := range errs {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			l.Add(joined.Unwrap()...)
		} else if err != nil {
			l.errs = append(l.errs, err)
		}
	}
}

// Addf appends an error with the text that [fmt.Errorf] makes of the arguments.
func (l *List) Addf(format string, args ...any) {
	l.errs = append(l.errs, fmt.Errorf(l.Prefix+format, args...))
}

// Check appends an error, as Addf does, unless ok is true. It returns ok.
func (l *List) Check(ok bool, format string, args ...any) bool {
	if !ok {
		l.Addf(format, args...)
	}
	return ok
}

// Positive checks that a number is finite and above 0.
func (l *List) Positive(name string, v float64) {
	l.Check(v > 0 && !math.IsInf(v, 0), "%s is %v (want a positive number)", name, v)
}

// AtLeast checks that a number is finite and not below least.
func (l *List) AtLeast(name string, v, least float64) {
	l.Check(v >= least && !math.IsInf(v, 0), "%s is %v (want %v or more)", name, v, least)
}

// Within checks that a value is between low and high, both included. NaN is not.
func Within[T cmp.Ordered](l *List, name string, v, low, high T) {
	l.Check(v >= low && v <= high, "%s is %v (want %v to %v)", name, v, low, high)
}

func (l *List) Len() int { return len(l.errs) }

// Err returns all errors as one, as [errors.Join] does, or nil if there are none.
func (l *List) Err() error { return errors.Join(l.errs...) }
