package export

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
)

// WriteSamples writes samples in Prometheus' text format, version 0.0.4, ordered by their names and by the values of
// their labels. It sorts the samples and their labels.
func WriteSamples(w io.Writer, samples []*Sample) error {
	for _, s := range samples {
		slices.SortFunc(s.Labels, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(samples, func(a, b *Sample) int {
		return cmp.Or(strings.Compare(a.Name, b.Name),
			slices.CompareFunc(a.Labels, b.Labels, func(x, y Label) int { return strings.Compare(x.Value, y.Value) }))
	})
	var b []byte
	for i, s := range samples {
		if i == 0 || s.Name != samples[i-1].Name {
			b = append(b, "# HELP "+s.Name+" "+s.Help+"\n# TYPE "+s.Name+" "+s.Type+"\n"...)
		}
		b = s.append(b)
	}
	_, err := w.Write(b)
	return err
}

func (s *Sample) append(b []byte) []byte {
	var labels []string
	for _, l := range s.Labels {
		labels = append(labels, l.Name+"="+quote(l.Value))
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	line := func(suffix string, labels []string, v float64) {
		b = append(b, s.Name+suffix...)
		if len(labels) > 0 {
			b = append(b, "{"+strings.Join(labels, ",")+"}"...)
		}
		b = append(b, " "+number(v)+"\n"...)
	}
	if s.Type != "histogram" {
		line("", labels, s.Value)
		return b
	}
	for i, n := range s.Counts {
		line("_bucket", append(slices.Clip(labels), `le="`+number(s.Bounds[i])+`"`), float64(n))
	}
	line("_bucket", append(slices.Clip(labels), `le="+Inf"`), float64(s.Count))
	line("_sum", labels, s.Value)
	line("_count", labels, float64(s.Count))
	return b
}
