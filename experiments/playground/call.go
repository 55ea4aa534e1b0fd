package playground

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"clifftop/experiments"
	"clifftop/experiments/scenario/yamldoc"
)

// fault is one mistake in a query.
type fault struct {
	// Key is the scenario's key, such as engine.max_num_seqs; empty for the whole scenario.
	Key string `json:"key"`
	// Problem names the mistake and what to write instead. Hint proposes a solution and is often empty.
	Problem string `json:"problem"`
	Hint    string `json:"hint"`
}

// question holds the arguments of all methods; each method needs some of them.
type question struct {
	Query
	Load   int `json:"load"`
	Round  int `json:"round"`
	Number int `json:"number"`
}

// Call calls a method by its name with JSON arguments, and returns JSON: {"ok": …} or {"faults": […]}. The methods
// are describe, point, summary, curve, load, judge and hold; progress reports the progress of hold. Call never
// panics, because the page could not continue.
func (p *Player) Call(ctx context.Context, method string, arguments []byte,
	progress func(done, total int)) (result []byte) {
	defer func() {
		if broken := recover(); broken != nil {
			result = refusal(fmt.Errorf("the simulator failed: %v", broken))
		}
	}()
	var q question
	if err := json.Unmarshal(arguments, &q); err != nil {
		return refusal(fmt.Errorf("what the page asks cannot be read: %w", err))
	}
	value, err := p.call(ctx, method, q, progress)
	if err != nil {
		return refusal(err)
	}
	text, err := encode(map[string]any{"ok": value}, "")
	if err != nil {
		return refusal(err)
	}
	return text
}

func (p *Player) call(ctx context.Context, method string, q question, progress func(done, total int)) (any, error) {
	switch method {
	case "describe":
		return p.Describe()
	case "point":
		return p.Point(ctx, q.Query)
	case "summary":
		return p.Summary(ctx, q.Query)
	case "curve":
		return p.Curve(ctx, q.Query)
	case "load":
		return p.Load(ctx, q.Load, q.Round)
	case "judge":
		return p.Judgement(), nil
	case "hold":
		return p.Hold(ctx, q.Number, progress)
	}
	return nil, fmt.Errorf("the method %q is not known", method)
}

// Summary is the summary of a query's scenario, as clifftop run --format json prints it.
func (p *Player) Summary(ctx context.Context, q Query) (string, error) {
	s, err := p.scenario(q)
	if err != nil {
		return "", err
	}
	r, err := experiments.Settled(ctx, s, experiments.RunOptions{})
	if err != nil {
		return "", err
	}
	text, err := encode(r.Summary, "  ")
	return string(text), err
}

// encode writes JSON without escapes for HTML.
func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return b.Bytes(), err
}

func refusal(err error) []byte {
	var list []fault
	var faults yamldoc.Faults
	if errors.As(err, &faults) {
		for _, f := range faults {
			list = append(list, fault{f.Key, f.Problem, f.Hint})
		}
	} else {
		list = []fault{{Problem: err.Error()}}
	}
	text, _ := encode(map[string]any{"faults": list}, "")
	return text
}
