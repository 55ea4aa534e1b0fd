package plot

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"clifftop/report/chart"
)

func sampleChart() *chart.Lines {
	return &chart.Lines{
		Title: "Twice the load, half the joy", Caption: "a sample", Notes: []string{"A note."},
		Panels: []chart.Panel{{
			Title: "Joy", X: chart.Scale{Title: "Load"}, Y: chart.Scale{Title: "Joy per hour", Unit: chart.Dollars},
			Lines: []chart.Line{
				{Name: "as planned", Guide: true, Points: []chart.Point{{X: 0, Y: 0}, {X: 10, Y: 100}}},
				{Name: "measured", Dots: true,
					Points: []chart.Point{{X: 1, Y: 10, Label: "first"}, {X: 5, Y: 30}, {X: 9, Y: 20, Hollow: true}}},
			},
			Rules: []chart.Rule{{At: 25, Name: "enough"}, {At: 5, Vertical: true, Name: "knee"}},
		}, {
			Title: "Wait", X: chart.Scale{Title: "log scale", Unit: chart.Milliseconds, Log: true},
			Y:     chart.Scale{Title: "at most so long", Unit: chart.Fraction},
			Lines: []chart.Line{chart.Distribution("waits", []float64{300, 10, 20, 2000})},
		}, {Title: "Nothing"}},
	}
}

func TestChart(t *testing.T) {
	got := texts(t, Draw(sampleChart()))
	for _, want := range []string{"Twice the load, half the joy", "a sample", "A note.", "Joy", "as planned",
		"measured", "first", "enough", "knee", "$20", "Joy per hour", "waits", "1 s", "Nothing was measured"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	c := sampleChart()
	c.Beside = true
	if got := texts(t, Draw(c)); !slices.Contains(got, "measured") {
		t.Errorf("beside one another the panels lose %q", got)
	}
}

func TestChartInText(t *testing.T) {
	var b strings.Builder
	if err := DrawText(&b, sampleChart(), 60); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Joy: Joy per hour", "$0 |", "* measured", ". as planned", "- enough", ": knee",
		"Wait: at most so long", "100 % |", "  1 s\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(line)); n > 61 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestGuideEndsAtTheTop cuts a line for comparison where it leaves the panel.
func TestGuideEndsAtTheTop(t *testing.T) {
	p := &panel{x: axis{min: 0, max: 10}, y: axis{min: 0, max: 50}}
	if _, b := clip(xy{x: 2, y: 40}, xy{x: 6, y: 80}, &p.x, &p.y); b.x != 3 || b.y != 50 {
		t.Errorf("it ends at %g, %g", b.x, b.y)
	}
	p.x.log = true
	if _, b := clip(xy{x: 1, y: 0}, xy{x: 100, y: 100}, &p.x, &p.y); math.Abs(b.x-10) > 1e-9 || b.y != 50 {
		t.Errorf("on a log axis it ends at %g, %g", b.x, b.y)
	}
}

func TestRoofline(t *testing.T) {
	p := chart.Roofline(1000e12, 2e12, chart.Line{Points: []chart.Point{{X: 4, Y: 6}, {X: 600, Y: 700}}})
	roof := p.Lines[0].Points
	if roof[1] != (chart.Point{X: 500, Y: 1000}) || roof[2].Y != 1000 || math.Abs(roof[0].Y/roof[0].X-2) > 1e-9 {
		t.Errorf("the roof is %v", roof)
	}
	got := texts(t, Draw(&chart.Lines{Panels: []chart.Panel{p}}))
	if !slices.Contains(got, "ridge, 500 FLOPs/byte") {
		t.Errorf("%q", got)
	}
}

func sampleTimeline() *chart.Timeline {
	return &chart.Timeline{
		Title: "Stops", Kinds: []string{"usual", "stop"}, FromS: 10, ToS: 12,
		Lanes: []chart.Lane{{Name: "first",
			Slices: []chart.Slice{{StartS: 9, EndS: 10.5, Kind: 0}, {StartS: 10.5, EndS: 11.5, Kind: 1},
				{StartS: 11.5, EndS: 13, Kind: 0}}},
			{Name: "second", Slices: []chart.Slice{{StartS: 11, EndS: 12, Kind: 1}}}},
	}
}

func TestTimeline(t *testing.T) {
	got := texts(t, Draw(sampleTimeline()))
	for _, want := range []string{"Stops", "usual", "stop", "first", "second", "Time, s", "11"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	var b strings.Builder
	if err := DrawText(&b, sampleTimeline(), 49); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first  |..........####################..........|",
		"second |                    ####################|", ". usual   # stop"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if got := texts(t, Draw(&chart.Timeline{Title: "Empty", ToS: 1})); !slices.Contains(got, "Nothing was recorded") {
		t.Errorf("without lanes it says %q", got)
	}
}

func TestWaterfall(t *testing.T) {
	f := &chart.Waterfall{
		Title: "Half is wasted", Unit: "tokens/s", Stages: []string{"emitted", "successful", "in time"},
		Groups: []chart.WaterfallGroup{{Name: "patient", Values: []float64{6000, 6000, 5500}},
			{Name: "hasty", Values: []float64{6000, 3000, 0}}},
	}
	got := texts(t, Draw(f))
	for _, want := range []string{"Half is wasted", "patient", "hasty", "emitted", "in time", "6k", "−3k", "5.5k",
		"0"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	var b strings.Builder
	if err := DrawText(&b, f, 80); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(b.String(), "\n")
	count := func(line, of string) int { return strings.Count(line, of) }
	if whole := count(rows[2], "#"); whole < 40 || count(rows[8], "#") != (whole+1)/2 ||
		count(rows[8], ".") != whole/2 || count(rows[9], "#") != 0 {
		t.Errorf("the bars are\n%s", b.String())
	}
	var png bytes.Buffer
	if err := Draw(&chart.Waterfall{Groups: []chart.WaterfallGroup{{Name: "none", Values: []float64{0}}},
		Stages: []string{"all"}}).WritePNG(&png); err != nil {
		t.Error(err)
	}
}
