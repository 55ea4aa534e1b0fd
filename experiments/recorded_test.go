package experiments_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/internal/testenv"
)

// The rows of a recorded trace are all accounted for: as they are, thinned and superposed.
func TestRecordedTraceIsAccountedFor(t *testing.T) {
	dir := testenv.Traces(t)
	const rows = 19366
	for _, scale := range []float64{1, 0.5, 2.5} {
		text := fmt.Sprintf("workload: {trace: {file: %q, scale: %v}}\n",
			filepath.Join(dir, "AzureLLMInferenceTrace_conv.csv.gz"), scale)
		s, err := scenario.Parse("recorded", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{Check: scale < 1})
		if err != nil {
			t.Fatal(err)
		}
		n := r.Summary.Requests
		if ended := n.Completed + n.Rejected + n.TimedOut + n.Cancelled + n.Failed +
			n.InSystemAtEnd; ended != n.Offered {
			t.Errorf("scale %v: %d requests offered, %d accounted for", scale, n.Offered, ended)
		}
		// Rows are kept or copied one by one, with the probability of the fraction.
		part := scale - math.Floor(scale)
		want, chance := rows*scale, 4*math.Sqrt(rows*part*(1-part))
		if math.Abs(float64(n.Offered)-want) > chance {
			t.Errorf("scale %v: %d requests offered, want %.0f ± %.0f", scale, n.Offered, want, chance)
		}
	}
}
