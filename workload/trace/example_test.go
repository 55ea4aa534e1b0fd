package trace_test

import (
	"fmt"
	"strings"

	"clifftop/workload/trace"
)

const recorded = `arrival_s,input_tokens,output_tokens
0,512,100
1,800,20
2,64,300
3,900,10
`

func open() (*trace.File, error) {
	return trace.Open(strings.NewReader(recorded), "chat.csv", trace.Options{})
}

// A trace read row by row.
func ExampleOpen() {
	r, err := open()
	if err != nil {
		fmt.Println(err)
		return
	}
	first, err := r.Next()
	fmt.Println(first.Arrival, first.InputTokens, first.OutputTokens, err)
	// Output: 0.000000000000s 512 100 <nil>
}

// A fault states its position, the value found and the values allowed.
func ExampleOpen_fault() {
	r, _ := trace.Open(strings.NewReader("TIMESTAMP,ContextTokens,GeneratedTokens\nnoon,10,5\n"), "azure.csv",
		trace.Options{})
	_, err := r.Next()
	fmt.Println(err)
	// Output: azure.csv:2: TIME: "noon" is not a timestamp (want 2006-01-02 15:04:05[.fraction][zone])
}

func ExampleScan() {
	r, err := open()
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := trace.Scan(r)
	fmt.Printf("%d rows, %.0f/s, %.0f tokens in, %.1f out, %v\n", s.Rows, s.Rate(), s.MeanInput, s.MeanOutput, err)
	// Output: 4 rows, 1/s, 569 tokens in, 107.5 out, <nil>
}

// A trace of one request a second, replayed at two.
func ExampleReplay() {
	source, err := trace.Replay(open, trace.Load{Rate: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for at, ok := source.Peek(); ok; at, ok = source.Peek() {
		r := source.Next()
		fmt.Println(at.Seconds(), r.InputTokens)
	}
	fmt.Println(source.Applied())
	// Output:
	// 0 512
	// 0 64
	// 1 800
	// 1 900
	// 2 64
	// 2 512
	// 3 900
	// 3 800
	// [superpose: 2 copies, shifted evenly over 4s]
}
