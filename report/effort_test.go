package report

import "testing"

func TestEffortText(t *testing.T) {
	e := Effort{Compositions: 8, PlainCompositions: 6, FirstGeneral: "an optional part",
		SpanEnds: map[string]int64{"the policy": 1, "a sequence ends": 3}}
	const want = "75.0 % of 8 compositions are plain; the first other one has an optional part; " +
		"spans end because of: a sequence ends 75 %, the policy 25 %"
	if got := e.String(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
