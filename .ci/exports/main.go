// Command check reads metrics in Prometheus' text format with Prometheus' own parser and checks the histograms.
//
//	go -C .ci/exports run . ../../results/metrics.prom
//
// With -queries it prints the queries of a dashboard instead, one per line, with the variables filled in.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 1:
		err = check(args[0])
	case len(args) == 2 && args[0] == "-queries":
		err = queries(args[1])
	default:
		err = fmt.Errorf("wrong arguments (want METRICS.prom, or -queries DASHBOARD.json)")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "check: %v\n", err)
		os.Exit(1)
	}
}

func check(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(f)
	if err != nil {
		return err
	}
	count := map[dto.MetricType]int{}
	for name, family := range families {
		count[family.GetType()]++
		if family.GetType() == dto.MetricType_UNTYPED || family.GetHelp() == "" {
			return fmt.Errorf("%s has no type or help", name)
		}
		for _, m := range family.Metric {
			if err := cumulative(m.GetHistogram()); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if count[dto.MetricType_GAUGE] == 0 || count[dto.MetricType_COUNTER] == 0 || count[dto.MetricType_HISTOGRAM] == 0 {
		return fmt.Errorf("no metric of some type: %v (want gauges, counters and histograms)", count)
	}
	fmt.Printf("%s: %d gauges, %d counters and %d histograms\n", path, count[dto.MetricType_GAUGE],
		count[dto.MetricType_COUNTER], count[dto.MetricType_HISTOGRAM])
	return nil
}

// cumulative checks that bucket counts do not decrease and that the last bucket has all samples.
func cumulative(h *dto.Histogram) error {
	if h == nil {
		return nil
	}
	var last uint64
	bound := 0.0
	for i, b := range h.Bucket {
		if b.GetCumulativeCount() < last || i > 0 && b.GetUpperBound() <= bound {
			return fmt.Errorf("bucket %g has %d samples, fewer than the previous bucket with %d", b.GetUpperBound(),
				b.GetCumulativeCount(), last)
		}
		last, bound = b.GetCumulativeCount(), b.GetUpperBound()
	}
	if last != h.GetSampleCount() {
		return fmt.Errorf("the last bucket has %d of %d samples", last, h.GetSampleCount())
	}
	return nil
}

// queries prints the queries of a dashboard.
func queries(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var d struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return err
	}
	fill := strings.NewReplacer("$model_name", "llama-3.1-8b", "$engine", ".*", "$deployment", ".*", "$namespace",
		".*", "$__rate_interval", "20s")
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			fmt.Println(fill.Replace(t.Expr))
		}
	}
	return nil
}
