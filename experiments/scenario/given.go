package scenario

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/workload"
)

// At is where a key, or else the nearest map around it, was written. A key that its pool has is called by that one's.
func (s *Scenario) at(key string) (p yamldoc.Place, called string, ok bool) {
	called = key
	if s.origin == nil {
		return p, called, false
	}
	for key != "" {
		if p, ok = s.origin.places[key]; ok {
			if _, own := s.origin.fleet[yamldoc.Join(s.origin.pool, key)]; own {
				called = yamldoc.Join(s.origin.pool, called)
			}
			return p, called, true
		}
		key = key[:max(0, strings.LastIndexByte(key, '.'))]
	}
	return yamldoc.Place{Origin: s.origin.file}, called, s.origin.file != ""
}

// Fault says what is wrong with the value of a key.
func (s *Scenario) Fault(key, format string, args ...any) *yamldoc.Fault {
	f := &yamldoc.Fault{Key: key, Problem: fmt.Sprintf(format, args...)}
	if p, called, ok := s.at(key); ok {
		f.Key = called
		f.Where = p.String()
		if p.Origin == s.origin.file {
			f.Excerpt = yamldoc.Excerpt(s.origin.lines, p)
		}
	}
	return f
}

// refuse are the findings of a resolver that ends with a fault.
func (s *Scenario) refuse(key, format string, args ...any) findings {
	return refuse(s.Fault(key, format, args...))
}

// Given reports whether a key was given by the file or a flag.
func (s *Scenario) Given(key string) bool {
	if s.origin == nil {
		return false
	}
	_, ok := s.origin.places[key]
	return ok
}

// FirstGiven is the first of the keys that was given, or the first of all.
func (s *Scenario) FirstGiven(keys ...string) string {
	for _, key := range keys {
		if s.Given(key) {
			return key
		}
	}
	return keys[0]
}

// path makes a path given under a key relative to the scenario file, or, where a flag set it, to
// the working directory.
func (s *Scenario) path(key, path string) string {
	if filepath.IsAbs(path) || s.origin == nil || s.origin.file == "" {
		return path
	}
	if p, ok := s.origin.places[key]; ok && p.Origin != s.origin.file {
		return path
	}
	return filepath.Join(filepath.Dir(s.origin.file), path)
}

// shared has what scenarios made of this one have in common with it; nil without any.
func (s *Scenario) shared() *shared {
	if s.origin == nil {
		return nil
	}
	return s.origin.shared
}

func (s *Scenario) rules() *Rules {
	if s.origin == nil {
		return BuiltIn()
	}
	return s.origin.shared.rules
}

// fieldFaults gives the workload package's faults their places.
func (s *Scenario) fieldFaults(err error) yamldoc.Faults {
	var faults yamldoc.Faults
	var add func(error)
	add = func(err error) {
		var f *workload.FieldError
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				add(e)
			}
		} else if errors.As(err, &f) {
			key := strings.NewReplacer("[", ".", "]", "").Replace(f.Key)
			faults = append(faults, s.Fault(key, "%s", f.Problem))
		} else {
			faults = append(faults, s.Fault("workload", "%v", err))
		}
	}
	add(err)
	return faults
}

// Lasting refuses what runs several loads of a lifecycle for as long as their requests take: each would meet another
// part of it.
func (s *Scenario) Lasting(what string) error {
	if s.Lifecycle == nil || s.Run.Duration != nil {
		return nil
	}
	return yamldoc.Faults{s.Fault("lifecycle",
		"%s runs several loads: with a lifecycle all runs must have the same length (set run.duration)", what)}
}
