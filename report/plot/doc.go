// Package plot draws results: the pictures of a sweep and of a run as PNG and SVG, and a sweep as
// text for the terminal.
//
// [Curve] makes one picture of a [clifftop/report/curve.Curve] by name, [WriteAll] writes all of them,
// [Run] draws one run over time, and [Terminal] prints a sweep in text. Equal input gives equal bytes.
//
// [Draw] draws whatever picture of package chart it is given, and [DrawText] in text; [Comparison], [Overlay] and
// [Parity] set systems beside each other.
//
// A picture's title states what the data say. Lines are named where they end, loads are written
// along the curve, and knee, peak and collapse have marks of different shapes. Points without
// a steady state are hollow and their lines dotted: what they show grows with the length of
// the run. A statistic without a sample is left out, and so is a 99th percentile of fewer than a
// thousand samples.
package plot
