package plot_test

import (
	"fmt"
	"io"
	"os"

	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/plot"
)

// sweptCurve is a small sweep of the number of users.
func sweptCurve() *curve.Curve {
	c := &curve.Curve{Over: "users"}
	for i, users := range []float64{10, 50, 100, 200} {
		tps := []float64{500, 2300, 2830, 2500}[i]
		ttft := []float64{20, 60, 900, 13000}[i]
		s := &report.Summary{}
		s.Throughput.OutputTokensPerS = &tps
		s.Latency.TTFT = report.Distribution{N: 5000, P95: &ttft}
		c.Points = append(c.Points, curve.Point{Value: users, Summary: s})
	}
	c.Knee = &curve.Knee{Value: 50, OutputTokensPerS: 2300}
	c.Peak = &curve.Peak{Value: 100, OutputTokensPerS: 2830}
	c.Collapse = &curve.Collapse{Value: 200, OutputTokensPerS: 2500, FallFraction: 0.12}
	return c
}

func ExampleCurve() {
	f, err := plot.Curve(sweptCurve(), "operating")
	if err != nil {
		fmt.Println(err)
		return
	}
	f.Caption = "70B on one H100"
	fmt.Println(f.Title)
	if err := f.WriteSVG(io.Discard); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Knee at 50 users: 2.3k output tok/s, TTFT p95 60 ms; beyond 100 users throughput falls, by up to 12 %
}

func ExampleTerminal() {
	if err := plot.Terminal(os.Stdout, sweptCurve(), 60); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Knee at 50 users: 2.3k output tok/s, TTFT p95 60 ms; beyond
	// 100 users throughput falls, by up to 12 %.
	//
	// Output tokens/s, whole system
	//         |                     ...P.....
	//         |               ......         ............
	//         |            K..                           ......C
	//         |          ..
	//      2k |         .
	//         |       ..
	//         |      .
	//      1k |     .
	//         |   ..
	//         |  *
	//         |
	//       0 |
	//         +--------------------------------------------------
	//          0          50          100         150         200
	//                            Users at once
	//
	// Time to first token, p95, log scale
	//         |
	//    10 s |                                            ....C
	//         |                                    ........
	//         |                            ........
	//     1 s |                      ..P...
	//         |                  ....
	//  100 ms |              ....
	//         |       .....K.
	//         |  *....
	//   10 ms |
	//         +--------------------------------------------------
	//          0          50          100         150         200
	//                            Users at once
	//
	// * measured   K knee at 50 users   P peak at 100 users
	// C collapse at 200 users
}
