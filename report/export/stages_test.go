package export_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/report"
	"clifftop/report/export"
	"clifftop/sim/event"
)

// stageTracks are the slices of the stages of each replica, and its iterations.
func (tl *timeline) stageTracks() (stages map[int]map[string][]traceEvent, iterations map[int][]traceEvent) {
	type track struct{ process, thread int }
	names := map[track]string{}
	stages, iterations = map[int]map[string][]traceEvent{}, map[int][]traceEvent{}
	for _, e := range tl.Events {
		on := track{*e.Process, *e.Thread}
		switch {
		case e.Name == "thread_name":
			names[on] = e.Args["name"].(string)
		case e.Phase != "X":
		case names[on] == "iterations":
			iterations[on.process] = append(iterations[on.process], e)
		case strings.HasPrefix(names[on], "stage "):
			if stages[on.process] == nil {
				stages[on.process] = map[string][]traceEvent{}
			}
			stages[on.process][names[on]] = append(stages[on.process][names[on]], e)
		}
	}
	return stages, iterations
}

// within is how many seconds of a slice lie in a window.
func within(e traceEvent, from, to float64) float64 {
	start := *e.At / 1e6
	return max(0, min(start+*e.Length/1e6, to)-max(start, from))
}

// spent adds up GPU seconds: all that is neither a bubble nor idle, and the bubbles.
func spent(g *report.GPUSeconds) (work, bubble float64) {
	for _, v := range []*float64{g.Useful, g.Recompute, g.CacheMiss, g.Cancelled, g.Rejected, g.Padding, g.Swap,
		g.Host} {
		work += *v
	}
	return work, *g.Bubble
}

// TestStages holds the tracks of stages to the account of GPU time: a stage does one thing at a time, batches pass the
// stages in order, what the stages worked is what was not lost to bubbles, and bubbles are the gaps while something is
// in flight.
func TestStages(t *testing.T) {
	r := one(t, "pipeline")
	const stages, gpusEach = 3, 2
	tl := readTimeline(t, r.trace.Bytes())
	tracks, iterations := tl.stageTracks()
	if len(tracks) != 2 {
		t.Fatalf("%d replicas have stages", len(tracks))
	}
	w := r.result.Summary.Window
	var work, bubble float64
	together := 0
	for process, list := range iterations {
		inFlight := 0.0
		for _, e := range list {
			inFlight += within(e, w.StartS, w.EndS)
		}
		bubble += stages * inFlight
		for i := range stages {
			track := tracks[process][fmt.Sprintf("stage %d", i)]
			if len(track) != len(list) || len(list) < 100 {
				t.Fatalf("stage %d has %d slices of %d iterations", i, len(track), len(list))
			}
			for k, e := range track {
				end := *e.At + *e.Length
				if k > 0 && *e.At < *track[k-1].At+*track[k-1].Length-1e-4 {
					t.Fatalf("stage %d: iteration %d begins at %v us, before the one ahead has left", i, k, *e.At)
				}
				if e.Args["iteration"] != float64(k+1) || e.Name != list[k].Name ||
					e.Args["decode_tokens"] != list[k].Args["decode_tokens"] {
					t.Fatalf("stage %d: %+v is not %+v", i, e, list[k])
				}
				if i > 0 {
					before := tracks[process][fmt.Sprintf("stage %d", i-1)]
					if *e.At < *before[k].At+*before[k].Length {
						t.Fatalf("iteration %d is in stage %d at %v us and has not left the one before", k, i, *e.At)
					}
					if k+1 < len(before) && *before[k+1].At < end {
						together++
					}
				}
				if i == stages-1 && math.Abs(end-*list[k].At-*list[k].Length) > 0.0015 {
					t.Fatalf("iteration %d leaves the last stage at %v us, and ends at %v", k, end,
						*list[k].At+*list[k].Length)
				}
				took := within(e, w.StartS, w.EndS)
				work += took
				bubble -= took
			}
		}
	}
	if together < 500 {
		t.Errorf("only %d times two batches were on their way at once", together)
	}
	wantWork, wantBubble := spent(&r.result.Summary.System.GPUSeconds)
	if math.Abs(work*gpusEach-wantWork) > 1e-5*wantWork || math.Abs(bubble*gpusEach-wantBubble) > 1e-5*wantWork {
		t.Errorf("the stages worked for %.9g GPU s and waited for %.9g, want %.9g and %.9g", work*gpusEach,
			bubble*gpusEach, wantWork, wantBubble)
	}
	if wantBubble < 0.01*wantWork {
		t.Errorf("only %g GPU s of bubbles beside %g of work", wantBubble, wantWork)
	}
}

// TestStagesAreThinned joins the passages of several iterations: what the stages worked stays.
func TestStagesAreThinned(t *testing.T) {
	u := resolved(t, scenarios["pipeline"])
	var thin bytes.Buffer
	replicas := []export.TraceReplica{{Name: "one", Stages: 3}, {Name: "other", Stages: 3}}
	trace := export.NewTrace(&thin, export.TraceInfo{Replicas: replicas, Events: 5000})
	var want float64 // nanoseconds
	_, err := experiments.RunSetup(context.Background(), u,
		experiments.RunOptions{Observers: []event.Observer{trace}, Span: func(s *event.Span) {
			for i := range s.Passages {
				want += float64(s.Passages[i].Femtos) / 1e6
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Close(); err != nil {
		t.Fatal(err)
	}
	tl := readTimeline(t, thin.Bytes())
	tl.check(t)
	tracks, iterations := tl.stageTracks()
	var got float64
	slices, joined := 0, 0
	for process := range iterations {
		for _, track := range tracks[process] {
			slices += len(track)
			for _, e := range track {
				if work, ok := e.Args["work_ns"].(float64); ok {
					joined++
					got += work
					if work > *e.Length*1000+1 {
						t.Fatalf("%+v worked for longer than it lasted", e)
					}
				} else {
					got += *e.Length * 1000
				}
			}
		}
	}
	if math.Abs(got-want) > float64(slices) || joined == 0 {
		t.Errorf("%d slices, %d of several iterations, stand for %.12g ns of work, want %.12g", slices, joined, got,
			want)
	}
}
