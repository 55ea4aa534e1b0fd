package collect

import (
	"math"
	"testing"

	"clifftop/report"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// A request a second. In each third minute four of 60 are slow, more than the 5 % that may be; in minute 4 three are,
// which is 5 %, and in minute 7 four fail. Over hours 2.2 % are slow, but in hour 1 there are 4 % more.
func TestSLOHours(t *testing.T) {
	for _, test := range []struct {
		minutes int
		opts    Options
		want    *report.SLOHours
	}{
		{1, Options{}, nil},
		{10, Options{}, &report.SLOHours{Met: 5, Of: 10, HorizonS: 60}}, // not 0, 3, 6, 7 and 9
		{10, Options{Warmup: Warmup{Duration: 90 * clock.Second}}, &report.SLOHours{Met: 4, Of: 8, HorizonS: 60}},
		{300, Options{}, &report.SLOHours{Met: 4, Of: 5, HorizonS: 3600}},
	} {
		test.opts.SLO = limited("ttft", 95, clock.Second)
		test.opts.End = clock.Time(test.minutes) * clock.Time(clock.Minute)
		c := New(test.opts)
		var records []*event.Record
		for i := range int64(60 * test.minutes) {
			minute, second := i/60, i%60
			slow := minute%3 == 0 && second < 4 || minute == 4 && second < 3 || minute/60 == 1 && second%20 == 19
			switch at := float64(i); {
			case minute == 7 && second < 4:
				records = append(records, cut(i, at, 10))
			case slow:
				records = append(records, served(i, at, at+5, at+6, 5))
			default:
				records = append(records, served(i, at, at+.1, at+.5, 5))
			}
		}
		play(c, records...)
		got := c.Summary().SLOHours
		if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
			t.Errorf("%d minutes: %+v, want %+v", test.minutes, got, test.want)
		}
	}
}

// Of two classes with SLOs of their own, a minute meets the SLO if it does for both.
func TestSLOHoursOfClasses(t *testing.T) {
	c := New(Options{End: clock.Time(4 * clock.Minute), Classes: []ClassSpan{
		{Name: "chat", SLO: limited("ttft", 95, clock.Second)}, {Name: "batch", SLO: limited("e2e", 50, 10*clock.Second)},
		{Name: "free"},
	}})
	var records []*event.Record
	for i := range int64(240) {
		at := float64(i)
		rec := served(i, at, at+.1, at+.5, 5)
		switch minute := i / 60; {
		case minute == 1 && i%3 == 0, minute == 3 && i%3 == 2: // chat, and the class without an SLO
			rec = served(i, at, at+5, at+6, 5)
		case minute == 2 && i%3 == 1:
			rec = served(i, at, at+.1, at+20, 5)
		}
		rec.Request.Class = uint16(i % 3)
		records = append(records, rec)
	}
	play(c, records...)
	if got := c.Summary().SLOHours; got == nil || got.Met != 2 || got.Of != 4 {
		t.Errorf("%+v, want 2 of 4 minutes", got)
	}
}

// Minutes of 60 and of 120 requests in turn vary by 900 around 90, so that the variance of their counts over the mean is
// 10 (and 20/19 of it for a sample). The minute that the run ends in does not count.
func TestTrafficIsCounted(t *testing.T) {
	for _, c := range []struct {
		minutes int
		closed  bool
		want    float64
	}{{20, false, 10 * 20. / 19}, {9, false, 0}, {20, true, 0}} {
		k := New(Options{Closed: c.closed})
		id := int64(0)
		for m := range c.minutes {
			n := 60 * (1 + m%2)
			for i := range n {
				at := at(60*float64(m) + 60*float64(i)/float64(n))
				k.Arrived(at, &workload.Request{ID: id, Arrival: at})
				id++
			}
		}
		k.Arrived(at(60*float64(c.minutes)), &workload.Request{ID: id, Arrival: at(60 * float64(c.minutes))})
		got := k.Summary().Traffic
		if (got == nil) != (c.want == 0) {
			t.Fatalf("%d minutes, closed %v: %+v", c.minutes, c.closed, got)
		}
		if got != nil && (math.Abs(*got.Dispersion60S-c.want) > 1e-9 || *got.MinuteRate.P05 != 1 ||
			*got.MinuteRate.P95 != 2 || *got.MinuteRate.P50 != 1.5) {
			t.Errorf("%v", got)
		}
	}
}
