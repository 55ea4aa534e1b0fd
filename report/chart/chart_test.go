package chart

import (
	"encoding/json"
	"math"
	"testing"
)

func TestDistribution(t *testing.T) {
	var values []float64
	for i := range 5000 {
		values = append(values, float64((i*7919)%5000))
	}
	l := Distribution("", values)
	if n := len(l.Points); n != 400 || l.Points[0].X != 0 || l.Points[n-1] != (Point{X: 4999, Y: 1}) {
		t.Errorf("%d points from %v to %v", n, l.Points[0], l.Points[n-1])
	}
	for _, q := range l.Points {
		if q.Y != (q.X+1)/5000 {
			t.Fatalf("%g of the values are at most %g", q.Y, q.X)
		}
	}
	if l := Distribution("", nil); len(l.Points) != 0 {
		t.Errorf("of nothing there are %d points", len(l.Points))
	}
}

func TestRoofline(t *testing.T) {
	p := Roofline(1000e12, 2e12, Line{Points: []Point{{X: 4, Y: 6}, {X: 600, Y: 700}}})
	roof := p.Lines[0].Points
	if roof[1] != (Point{X: 500, Y: 1000}) || roof[2].Y != 1000 || math.Abs(roof[0].Y/roof[0].X-2) > 1e-9 {
		t.Errorf("the roof is %v", roof)
	}
	if got := p.Rules[0].Name; got != "ridge, 500 FLOPs/byte" {
		t.Errorf("the ridge is called %q", got)
	}
}

// TestJSON writes a picture as the browser reads it; what is not a number is null.
func TestJSON(t *testing.T) {
	l := Lines{Title: "Load", Panels: []Panel{{
		X: Scale{Title: "Load"}, Y: Scale{Unit: Milliseconds, Log: true},
		Lines: []Line{{Name: "wait", Dots: true,
			Points: []Point{{X: 1, Y: math.NaN()}, {X: 2, Y: 3, Label: "full", Hollow: true}}}},
		Rules: []Rule{{At: 5, Vertical: true, Name: "knee"}},
	}}}
	got, err := json.Marshal(l)
	const want = `{"title":"Load","caption":"","panels":[{"title":"",` +
		`"x":{"title":"Load","unit":"plain","log":false,"min":0,"max":0},"y":{"title":"","unit":"ms","log":true,"min":0,"max":0},` +
		`"lines":[{"name":"wait","points":[{"x":1,"y":null},{"x":2,"y":3,"label":"full","hollow":true}],"dots":true,"scattered":false,"guide":false}],` +
		`"rules":[{"at":5,"vertical":true,"name":"knee"}],"height":0}],"beside":false,"notes":null}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
