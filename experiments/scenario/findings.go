package scenario

import (
	"fmt"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report"
)

// findings are the warnings and faults of a resolver.
type findings struct {
	warnings []report.Warning
	faults   yamldoc.Faults
}

// warn adds a warning with a code for programs and a text for people.
func (f *findings) warn(code, format string, args ...any) {
	f.warnings = append(f.warnings, report.Warning{Code: code, Text: fmt.Sprintf(format, args...)})
}

// unused warns of a key without effect, if it was changed.
func (f *findings) unused(changed bool, key, why string) {
	if changed {
		f.warn("unused", "%s has no effect: %s", key, why)
	}
}

// fault adds faults, but for nil.
func (f *findings) fault(faults ...*yamldoc.Fault) {
	for _, x := range faults {
		if x != nil {
			f.faults = append(f.faults, x)
		}
	}
}

// refuse are the findings of a resolver that ends with faults. Warnings before them do not matter.
func refuse(faults ...*yamldoc.Fault) findings { return findings{faults: faults} }

// add adds the findings of another resolver, and reports whether it found no fault.
func (f *findings) add(more findings) bool {
	f.warnings = append(f.warnings, more.warnings...)
	f.faults = append(f.faults, more.faults...)
	return more.faults == nil
}
