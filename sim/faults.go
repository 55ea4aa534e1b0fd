package sim

import "fmt"

// faults collects what is wrong with a configuration.
type faults struct {
	of  string // what each begins with
	all []error
}

// want notes a fault where what is wanted does not hold.
func (f *faults) want(ok bool, format string, args ...any) {
	if !ok {
		f.all = append(f.all, fmt.Errorf(f.of+format, args...))
	}
}
