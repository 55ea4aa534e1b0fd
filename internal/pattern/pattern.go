// Package pattern has regular expressions for package variables. They are compiled when they are first used, so that a
// program does not pay at its start for those that it does not need.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression. Several goroutines may use it.
type Pattern struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

// New returns the pattern with the syntax of package regexp.
func New(text string) *Pattern { return &Pattern{text: text} }

// Get returns the compiled pattern. It panics if the syntax is wrong.
func (p *Pattern) Get() *regexp.Regexp {
	p.once.Do(func() { p.compiled = regexp.MustCompile(p.text) })
	return p.compiled
}
