package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clifftop/internal/testenv"
	"clifftop/sim/clock"
	"clifftop/workload"
)

const (
	badAzure = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n" +
		"2023-11-16 18:15:46.6805900,374,44\r\n" +
		"2023-11-16 18:15:45.0,10,5\r\n" +
		"noon,10,5\r\n" +
		"2023-11-16 18:15:47,abc,5\r\n" +
		"2023-11-16 18:15:48,-3,5\r\n" +
		"2023-11-16 18:15:49,12\r\n" +
		"2023-11-16 18:15:50,12,5,9\r\n" +
		"2023-11-16 18:15:51,0,7\r\n" +
		"2023-11-16 18:15:52,9,0\r\n" +
		"\r\n" +
		"2023-11-16 18:15:53,99999999999999999999,4\r\n" +
		"2023-11-16 18:15:54,20.0,6"
	badMooncake = `{"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [0, 1]}
{"timestamp": 3000, "input_length": 1025, "output_length": 5, "hash_ids": [0, 1]}
{"timestamp": 3000, "input_length": 600, "output_length": 5, "hash_ids": [0, 0]}
{"timestamp": -1, "input_length": 600, "output_length": 5, "hash_ids": [0, 2]}
{"timestamp": 3000, "input_length": 600, "output_length": 5}
{"timestamp": 3000, "input_length": "600", "output_length": 5, "hash_ids": [0,3]}
{"timestamp": 2000, "input_length": 100, "output_length": 5, "hash_ids": [9]}
{truncated

{"timestamp": 6000.5, "input_length": 100, "output_length": 0, "hash_ids": [10]}
`
	ownTrace = `arrival_s,input_tokens,output_tokens,session,content,class,priority
0.25,120,30,alice,sys:100,chat,-1
1,200,40,bob,sys:100|q:64,"big, slow",
2.000000000001,190,20,alice,sys:100|hi:20|@out:30|more:40,chat,
3,500,10,alice,sys:100|hi:20|@out:30|more:40|@out:20,chat,
4,16,1,,#00000000000000ff:16,,7
`
)

// read opens a trace and reads it to its end or first error.
func read(t testing.TB, text string, o Options) ([]workload.Request, *File, error) {
	t.Helper()
	f, err := Open(strings.NewReader(text), "t", o)
	if err != nil {
		return nil, nil, err
	}
	all, err := readAll(f)
	var rows []workload.Request
	for _, r := range all {
		rows = append(rows, r.Request)
	}
	if c := f.Counts(); err == nil {
		sum := c.Accepted + c.Outside
		for _, n := range c.Dropped {
			sum += n
		}
		if sum != c.Rows || int64(len(rows)) != c.Accepted {
			t.Errorf("%d rows read, %d accepted, %d given, %v dropped", c.Rows, c.Accepted, len(rows), c.Dropped)
		}
	}
	return rows, f, err
}

func TestAzureRules(t *testing.T) {
	rows, f, err := read(t, badAzure, Options{Mode: Skip, MaxBadFraction: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := map[Code]int64{Order: 1, Time: 1, Int: 2, Range: 1, Fields: 2, ZeroIn: 1, ZeroOut: 1}
	if got := f.Counts().Dropped; !maps.Equal(got, want) {
		t.Errorf("dropped %v, want %v", got, want)
	}
	if len(rows) != 2 || rows[0].Arrival != 0 || rows[1].Arrival != clock.Time(7319410*clock.Microsecond) ||
		rows[1].InputTokens != 20 || rows[1].ID != 1 {
		t.Errorf("rows %+v", rows)
	}
	if _, _, err = read(t, badAzure, Options{Mode: Skip}); err == nil ||
		!strings.Contains(err.Error(), "9 of 11 rows break a rule: 82 % (want at most 1 %)") {
		t.Errorf("too many bad rows: %v", err)
	}
}

// TestMessages reads each invalid row alone in mode strict.
func TestMessages(t *testing.T) {
	lines := strings.Split(badAzure, "\n")
	for i, want := range map[int]string{
		2:  `t:3: ORDER: "2023-11-16 18:15:45.0,10,5" is earlier than the row before (want rows in order of arrival, or mode fix)`,
		3:  `t:3: TIME: "noon" is not a timestamp (want 2006-01-02 15:04:05[.fraction][zone])`,
		4:  `t:3: INT: "abc" is not a whole number (want a number of tokens)`,
		5:  `t:3: RANGE: "-3" is negative (want a number of tokens)`,
		6:  `t:3: FIELDS: "2023-11-16 18:15:49,12" has 2 columns (want 3)`,
		7:  `t:3: FIELDS: "2023-11-16 18:15:50,12,5,9" has 4 columns (want 3)`,
		8:  `t:3: ZERO_IN: "2023-11-16 18:15:51,0,7" has an empty prompt (want input of 1 token or more)`,
		9:  `t:3: ZERO_OUT: "2023-11-16 18:15:52,9,0" has an empty output (want output of 1 token or more, or zero_output: drop or one)`,
		11: `t:3: INT: "99999999999999999999" does not fit 32 bits (want a number of tokens)`,
	} {
		_, _, err := read(t, strings.Join([]string{lines[0], lines[1], lines[i]}, "\n"), Options{})
		if err == nil || err.Error() != want {
			t.Errorf("line %d:\n got %v\nwant %s", i+1, err, want)
		}
		var row *rowError
		if !errors.As(err, &row) || row.Line != 3 {
			t.Errorf("%v is no row error of line 3", err)
		}
	}
}

func TestMooncakeRules(t *testing.T) {
	rows, f, err := read(t, badMooncake, Options{Mode: Skip, MaxBadFraction: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := map[Code]int64{HashLen: 2, HashDup: 1, Time: 1, Int: 1, Syntax: 1, ZeroOut: 1}
	if got := f.Counts().Dropped; !maps.Equal(got, want) || len(rows) != 2 {
		t.Errorf("dropped %v, want %v; %d rows", got, want, len(rows))
	}
	if c := rows[0].Content; len(c.Segments) != 2 || c.Segments[0].Tokens != 512 || rows[1].Content != nil {
		t.Errorf("content %+v and %+v", c, rows[1].Content)
	}
	lines := strings.SplitAfter(badMooncake, "\n")
	rows, f, err = read(t, lines[0]+lines[1]+lines[2], Options{Mode: Fix})
	if err != nil || len(rows) != 3 || rows[1].Content != nil || f.Counts().Fixed[HashLen] != 1 ||
		f.Counts().Fixed[HashDup] != 1 {
		t.Errorf("fixed: %v, %+v", err, f.Counts())
	}
	for i, want := range map[int]string{
		1: `t:2: HASHLEN: "[0, 1]" has 2 ids (want 3 ids for 1025 tokens in blocks of 512)`,
		2: `t:2: HASHDUP: "[0, 0]" has block 0 twice (want each id once in a prompt)`,
		5: `t:2: INT: "\"600\"" is not a whole number (want a number of tokens)`,
		7: `t:2: JSON: "{truncated" is not a JSON object (want one object per line)`,
	} {
		if _, _, err := read(t, lines[0]+lines[i], Options{}); err == nil || err.Error() != want {
			t.Errorf("line %d:\n got %v\nwant %s", i+1, err, want)
		}
	}
	chain := `{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}
{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}`
	if _, _, err := read(t, chain, Options{CheckChains: true}); err == nil ||
		!strings.Contains(err.Error(), "HASHCHAIN") {
		t.Errorf("broken chain: %v", err)
	}
}

// TestSharedBlocks: two Mooncake requests share the keys of their common full blocks and no others.
func TestSharedBlocks(t *testing.T) {
	rows, _, err := read(t, `{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [7, 8, 9]}
{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [7, 8, 9]}
{"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [7, 10]}`, Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys := func(r workload.Request) (list []uint64) {
		for k, n := workload.NewBlockKeys(&r, 16), int32(0); n < r.InputTokens/16; n++ {
			key, _ := k.Next()
			list = append(list, key)
		}
		return list
	}
	common := func(a, b []uint64) (n int) {
		for n < len(a) && n < len(b) && a[n] == b[n] {
			n++
		}
		return n
	}
	a, b, c := keys(rows[0]), keys(rows[1]), keys(rows[2])
	if common(a, b) != 64 || common(a, c) != 32 {
		t.Errorf("%d and %d common blocks of 16, want 64 and 32", common(a, b), common(a, c))
	}
}

func TestOwn(t *testing.T) {
	rows, f, err := read(t, ownTrace, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Format() != "clifftop" || fmt.Sprint(f.Classes()) != "[ chat big, slow]" {
		t.Errorf("format %s, classes %q", f.Format(), f.Classes())
	}
	last := rows[3]
	if rows[2].Arrival != clock.Time(2*clock.Second+1) || last.Session != 1 || last.Turn != 2 ||
		rows[0].Priority != -1 || rows[1].Class != 2 {
		t.Errorf("rows %+v", rows)
	}
	if s := last.Content.Segments; s[2].ID != workload.OutputID(1, 0) || s[4].ID != workload.OutputID(1, 1) ||
		s[0].ID != workload.SegmentID("sys") {
		t.Errorf("content %+v", s)
	}
	if rows[4].Content.Segments[0].ID != 255 || rows[4].Session != 0 {
		t.Errorf("row %+v", rows[4])
	}
	for text, want := range map[string]string{
		"1,2,3\n":               "",
		"x,2,3\n":               `TIME: "x" is not a time`,
		"-1,2,3\n":              `TIME: "-1" is negative`,
		"NaN,2,3\n":             "TIME",
		"1e300,2,3\n":           "out of range",
		"9e6,2,3\n":             "out of range",
		"1.5e1,2,3\n":           "",
		"1,2000001,3\n":         "above the limit",
		"1,2,3.5\n":             "INT",
		"1,2,+3\n":              "INT",
		"1,2,\n":                "INT",
		"1,\"2\",3\n":           "",
		"1,\"2,3\n":             "stray quote",
		"1,2,3\n\n  \n 2,3,4\n": "",
	} {
		_, _, err := read(t, "arrival_s,input_tokens,output_tokens\n"+text, Options{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	for content, want := range map[string]string{
		"a:3|b:4": "", "a": "not a segment", "a:0": "no tokens", ":3": "not a segment", "a:x": "INT",
		"@out:3": "does not exist", "#00:3": "", "#0000000000000zzz:3": "identity", "a:99": "more than the prompt",
	} {
		_, _, err := read(t, "arrival_s,input_tokens,output_tokens,content\n1,50,3,"+content+"\n", Options{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", content, err, want)
		}
	}
}

// chainedTrace has requests that wait for the outputs of earlier rows.
const chainedTrace = `arrival_s,input_tokens,output_tokens,session,content,class,priority,wait_s
0,10,5,a,sys:4|u1:6,tool,2,
,17,3,a,sys:4|u1:6|@out:5|u2:2,tool,2,1.5
,22,9,a,sys:4|u1:6|@out:5|u2:2|@out:3|u3:2,tool,2,0

0.5,7,7,b,,,,
2,30,1,a,@out:9,,,
`

// TestChainedRows: conversations whose turns wait for the previous output are unchanged after a read, a write and
// another read.
func TestChainedRows(t *testing.T) {
	file := func(text string) ([]Row, *File, error) {
		f, err := Open(strings.NewReader(text), "chained", Options{})
		if err != nil {
			return nil, nil, err
		}
		var rows []Row
		for {
			r, err := f.Next()
			if err == io.EOF {
				return rows, f, nil
			} else if err != nil {
				return rows, f, err
			}
			rows = append(rows, r)
		}
	}
	rows, f, err := file(chainedTrace)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || len(rows[0].Then) != 2 || rows[0].Then[0].Wait != 1500*clock.Millisecond ||
		rows[0].Then[1].InputTokens != 22 || rows[2].Turn != 3 {
		t.Fatalf("%+v", rows)
	}
	if got, want := rows[0].Then[1].Content.Segments[4].ID, workload.OutputID(rows[0].Session, 1); got != want {
		t.Errorf("the previous answer is %x, want %x", got, want)
	}
	var b bytes.Buffer
	w := NewWriter(&b, Columns{Waits: true}, f.Classes())
	for i := range rows {
		if err := w.WriteRow(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	again, _, err := file(b.String())
	if err != nil || fmt.Sprint(len(again), again[0].Request.Session) != fmt.Sprint(len(rows),
		rows[0].Request.Session) {
		t.Fatalf("%v: %+v", err, again)
	}
	for i := range rows {
		x, y := rows[i], again[i]
		for k := range x.Then {
			if fmt.Sprint(x.Then[k].Content) != fmt.Sprint(y.Then[k].Content) || x.Then[k].Wait != y.Then[k].Wait ||
				x.Then[k].OutputTokens != y.Then[k].OutputTokens {
				t.Errorf("row %d, turn %d: %+v, was %+v", i, k, y.Then[k], x.Then[k])
			}
		}
		if fmt.Sprint(x.Content) != fmt.Sprint(y.Content) || len(x.Then) != len(y.Then) || x.Class != y.Class ||
			x.Priority != y.Priority {
			t.Errorf("row %d: %+v, was %+v", i, y, x)
		}
	}
	const head = "arrival_s,input_tokens,output_tokens,session,wait_s\n"
	for text, want := range map[string]string{
		head + ",1,1,s,2\n":                `chained:2: PARENT: ",1,1,s,2" has wait_s but no row above it`,
		head + "0,1,1,s,\n3,1,1,s,2\n":     `chained:3: TIME: "3" is set together with wait_s`,
		head + "0,1,1,s,\n,1,1,t,2\n":      `chained:3: PARENT: ",1,1,t,2" has wait_s and another session than the row above`,
		head + "0,1,1,,\n,1,1,,2\n":        `chained:3: PARENT: ",1,1,,2" has wait_s and another session than the row above`,
		head + "0,1,1,s,\n,1,1,s,-2\n":     `chained:3: TIME: "-2" is negative`,
		head + "0,1,1,s,\n,1,0,s,2\n":      `chained:3: RANGE: ",1,0,s,2" has wait_s and an empty prompt or output`,
		head + "0,1,1,s,\n,1,1,s,x\n":      `chained:3: TIME: "x" is not a time`,
		head + "0,1,1,s,\n,1,1,s,1e99\n":   `chained:3: TIME: "1e99" is out of range`,
		head + "0,x,1,s,\n,1,1,s,1\n0,1\n": `chained:2: INT: "x" is not a whole number`,
	} {
		if _, _, err := file(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestWriter: rows are unchanged after writing and reading.
func TestWriter(t *testing.T) {
	rows, f, err := read(t, ownTrace, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := NewWriter(&b, Columns{Full: true}, f.Classes())
	for i := range rows {
		if err := w.Write(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	again, g, err := read(t, b.String(), Options{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	if fmt.Sprint(g.Classes()) != fmt.Sprint(f.Classes()) {
		t.Errorf("classes %q", g.Classes())
	}
	for i := range rows {
		a, b := rows[i], again[i]
		if fmt.Sprint(a.Content) != fmt.Sprint(b.Content) {
			t.Errorf("row %d: content %v, was %v", i, b.Content, a.Content)
		}
		if a.Content, b.Content = nil, nil; a != b {
			t.Errorf("row %d: %+v, was %+v", i, b, a)
		}
	}
	if !strings.Contains(b.String(), "@out:30") || !strings.Contains(b.String(), "2.000000000001,190,20,1,") {
		t.Errorf("written:\n%s", b.String())
	}
}

func TestDetection(t *testing.T) {
	const azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n"
	var zipped bytes.Buffer
	for range 2 { // two members
		z := gzip.NewWriter(&zipped)
		fmt.Fprint(z, azure)
		z.Close()
		break
	}
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, "2023-11-16 18:15:47,1,2\n")
	z.Close()
	for name, c := range map[string]struct {
		text string
		o    Options
		rows int
		want string
	}{
		"byte order mark": {"\ufeff" + azure, Options{}, 1, ""},
		"gzip members":    {zipped.String(), Options{}, 2, ""},
		"spaces": {" timestamp , CONTEXTTOKENS,GeneratedTokens\n2023-11-16 18:15:46 , 374, 44 \n", Options{},
			1, ""},
		"forced":         {azure, Options{Format: "azure"}, 1, ""},
		"forced wrongly": {azure, Options{Format: "clifftop"}, 0, "is not the header of format clifftop"},
		"empty":          {"", Options{}, 0, "t: EMPTY: the trace is empty"},
		"blank":          {"\n \r\n", Options{}, 0, "EMPTY"},
		"header only": {"TIMESTAMP,ContextTokens,GeneratedTokens\n", Options{}, 0,
			"t: EMPTY: no rows (want one or more)"},
		"unknown header": {"a,b\n1,2\n", Options{}, 0, "no known format (want arrival_s"},
		"unknown object": {`{"chat_id": 1, "timestamp": 1, "input_length": 1, "output_length": 2, "hash_ids": [1]}`,
			Options{}, 0, "no known format"},
		"bad mode": {azure, Options{Mode: "lax"}, 0, `mode "lax" is not known`},
		"cut gzip": {zipped.String()[:zipped.Len()-20], Options{}, 1, "cut short after 1 rows"},
	} {
		rows, f, err := read(t, c.text, c.o)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) ||
			len(rows) != c.rows {
			t.Errorf("%s: %d rows, %v, want %d, %s", name, len(rows), err, c.rows, c.want)
		}
		if f != nil && len(f.Warnings()) > 0 {
			t.Errorf("%s: %q", name, f.Warnings())
		}
	}
	_, f, err := read(t, "TIMESTAMP,Region,ContextTokens,GeneratedTokens\n2024-10-15T12:00:00.112Z,1,893,207\n",
		Options{})
	if err != nil || fmt.Sprint(f.Warnings()) != `[t: column "region" is not used]` {
		t.Errorf("extra column: %v", err)
	}
}

func TestZeroOutput(t *testing.T) {
	const text = "arrival_s,input_tokens,output_tokens\n1,2,3\n2,3,0\n"
	for policy, rows := range map[ZeroOutput]int{DropZero: 1, OneToken: 2} {
		got, f, err := read(t, text, Options{ZeroOutput: policy})
		if err != nil || len(got) != rows || f.Counts().Dropped[ZeroOut]+f.Counts().Fixed[ZeroOut] != 1 {
			t.Errorf("%s: %d rows, %v, %+v", policy, len(got), err, f.Counts())
		}
	}
}

// TestSorting: mode fix sorts nearby rows stably, and fails for rows that are too far out of order.
func TestSorting(t *testing.T) {
	const head = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	rows, f, err := read(t, head+"2024-05-12 00:00:03+00:00,1,1\n2024-05-12 00:00:01.5+00:00,2,1\n2024-05-12 00:00:03,3,1\n2024-05-12 02:00:02+02:00,4,1\n", Options{Mode: Fix})
	if err != nil {
		t.Fatal(err)
	}
	var order, times []int64
	for _, r := range rows {
		order, times = append(order, int64(r.InputTokens)), append(times, int64(r.Arrival)/1e9)
	}
	if fmt.Sprint(order, times) != "[2 4 1 3] [0 500 1500 1500]" || f.Counts().Fixed[Order] != 2 {
		t.Errorf("order %v at %v ms, %+v", order, times, f.Counts())
	}
	var b strings.Builder
	b.WriteString("arrival_s,input_tokens,output_tokens\n")
	for i := range SortWindow + 10 {
		fmt.Fprintf(&b, "%d,1,1\n", i+100)
	}
	b.WriteString("5,1,1\n")
	if _, _, err := read(t, b.String(), Options{Mode: Fix}); err == nil ||
		!strings.Contains(err.Error(), "more than 10000 rows out of order") {
		t.Errorf("far out of order: %v", err)
	}
}

// TestStamps compares parsed timestamps with those of package time.
func TestStamps(t *testing.T) {
	var s stamps
	for at := time.Date(1899, 12, 30, 23, 59, 58, 120_000_000,
		time.UTC); at.Year() < 2110; at = at.Add(13*24*time.Hour + 7*time.Hour + 61*time.Second) {
		for _, form := range []string{"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.0000Z07:00"} {
			got, ok := s.read([]byte(at.Format(form)))
			if !ok || got.seconds != at.Unix() || got.ps != int64(at.Nanosecond())*1000 {
				t.Fatalf("%s: %+v, %v, want %d", at.Format(form), got, ok, at.Unix())
			}
		}
	}
	for text, want := range map[string]int64{
		"2024-05-12 00:00:00+00:00": 0, "2024-05-12 00:00:00-01:30": 5400, "2024-05-12T00:00:00+0200": -7200,
		"2024-05-12 00:00:00+02": -7200,
	} {
		if got, ok := s.read([]byte(text)); !ok || got.seconds-1715472000 != want {
			t.Errorf("%s: %d, %v", text, got.seconds-1715472000, ok)
		}
	}
	for _, text := range []string{"2023-02-29 00:00:00", "2023-13-01 00:00:00", "2023-00-01 00:00:00",
		"2023-01-01 24:00:00", "2023-01-01 00:00:60",
		"2023-01-01 00:00:00.", "2023-01-01 00:00:00+1", "2023-01-01 00:00:00x", "2023-1-01 00:00:000",
		"2023/01/01 00:00:00", "2023-01-01"} {
		if _, ok := s.read([]byte(text)); ok {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestLongLines(t *testing.T) {
	text := "arrival_s,input_tokens,output_tokens,content\n0,100000,3,a:1" + strings.Repeat("|b:1",
		50000) + "\n1,2,3,\n"
	rows, _, err := read(t, text, Options{})
	if err != nil || len(rows) != 2 || len(rows[0].Content.Segments) != 50001 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if _, _, err := read(t, "arrival_s,input_tokens,output_tokens\n"+strings.Repeat("1", maxLine+1),
		Options{}); err == nil || !strings.Contains(err.Error(), "line 2 is longer") {
		t.Errorf("endless line: %v", err)
	}
}

// TestBrokenStream reads a stream that fails in the middle of a row.
func TestBrokenStream(t *testing.T) {
	r := io.MultiReader(strings.NewReader("arrival_s,input_tokens,output_tokens\n1,2,3\n2,3,44"), &broken{})
	f, err := Open(r, "t", Options{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readAll(f)
	if len(rows) != 1 || err == nil || err.Error() != "t: after 1 rows: the cable is out" {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if _, again := f.Next(); again != err {
		t.Errorf("then %v", again)
	}
}

type broken struct{}

func (*broken) Read([]byte) (int, error) { return 0, errors.New("the cable is out") }

func TestFixtures(t *testing.T) {
	dir := testenv.Traces(t)
	for file, want := range map[string]string{
		"fixtures/bad_azure.csv":      "2 map[FIELDS:2 INT:2 ORDER:1 RANGE:1 TIME:1 ZERO_IN:1 ZERO_OUT:1] <nil>",
		"fixtures/bad_mooncake.jsonl": "2 map[HASHDUP:1 HASHLEN:2 INT:1 JSON:1 TIME:1 ZERO_OUT:1] <nil>",
		"fixtures/bad_burstgpt.csv":   "3 map[CLASS:2 TIME:1 ZERO_OUT:2] <nil>",
		"fixtures/bom_azure.csv":      "1 map[] <nil>",
		"fixtures/empty.csv":          "0 map[] t: EMPTY: the trace is empty (want a header and rows)",
		"fixtures/header_only.csv":    "0 map[] t: EMPTY: no rows (want one or more)",
	} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		rows, f, err := read(t, string(data), Options{Mode: Skip, MaxBadFraction: 1})
		dropped := map[Code]int64{}
		if f != nil {
			dropped = f.Counts().Dropped
		}
		if got := fmt.Sprint(len(rows), " ", dropped, " ", err); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}

// TestPublicTraces reads the public traces strictly and compares them with published figures.
func TestPublicTraces(t *testing.T) {
	dir := testenv.Traces(t)
	for _, c := range []struct {
		file          string
		rows          int64
		rate, in, out float64
		quantised     bool
	}{
		{"AzureLLMInferenceTrace_conv.csv.gz", 19366, 5.53, 1154.7, 211.13, false},
		{"AzureLLMInferenceTrace_code.csv.gz", 8819, 2.566, 2047.85, 27.88, false},
		{"mooncake_fast25_conversation_trace.jsonl.gz", 12031, 3.401, 12035.06, 342.62, true},
		{"mooncake_fast25_synthetic_trace.jsonl.gz", 3993, 3.906, 15325, 149, false},
		{"fixtures/azure2024_format_synthetic.csv.gz", 0, 0, 0, 0, false},
		{"fixtures/toolagent_reconstruction.jsonl.gz", 0, 0, 0, 0, true},
		{"fixtures/azure2025_lmm_format_synthetic.csv.gz", 1000, 0, 0, 0, false},
		{"fixtures/burstgpt_v1_format_synthetic.csv.gz", 0, 0, 0, 0, false},
		{"fixtures/burstgpt_v3_format_synthetic.csv.gz", 0, 0, 0, 0, false},
		{"fixtures/qwen_bailian_format_synthetic.jsonl", 0, 0, 0, 0, false},
		{"llmservingsim_example_trace.jsonl", 10, 0, 0, 0, false},
		{"vidur_arxiv_summarization.csv.gz", 28257, 0, 2588.08, 291.43, false},
	} {
		file, err := os.Open(filepath.Join(dir, c.file))
		if err != nil {
			t.Fatal(err)
		}
		o := Options{CheckChains: true}
		if c.rows == 0 {
			o.Mode = Fix // a stamp without fraction is earlier than the one before
		}
		f, err := Open(file, c.file, o)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Scan(f)
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		t.Logf("%s: %d rows, %.3f/s, input %.2f, output %.2f, tick %v", c.file, s.Rows, s.Rate(), s.MeanInput,
			s.MeanOutput, s.Quantum)
		near := func(got, want float64) bool {
			return want == 0 || got > want*0.999 && got < want*1.001 || want == 149 && got > 148.5
		}
		if c.rows > 0 && s.Rows != c.rows || !near(s.Rate(), c.rate) || !near(s.MeanInput, c.in) ||
			!near(s.MeanOutput, c.out) || s.Quantised() != c.quantised {
			t.Errorf("%s: %+v, rate %.4f", c.file, s, s.Rate())
		}
	}
}

func TestQuoted(t *testing.T) {
	for v, want := range map[string]string{
		"":                            `""`,
		"1,2,x":                       `"1,2,x"`,
		strings.Repeat("a", 41):       `"` + strings.Repeat("a", 40) + `…"`,
		strings.Repeat("é", 30):       `"` + strings.Repeat("é", 20) + `…"`,
		"a" + strings.Repeat("é", 30): `"a` + strings.Repeat("é", 19) + `…"`,
		"\x00\xff\x80 W":              `"\x00\xff\x80 W"`,
		strings.Repeat("\xff", 41):    `"` + strings.Repeat(`\xff`, 10) + `…"`,
		strings.Repeat("\x01", 40):    `"` + strings.Repeat(`\x01`, 10) + `…"`,
	} {
		if got := (&rowError{Name: "t", Line: 1, Value: v,
			Problem: "is odd"}).Error(); got != "t:1: : "+want+" is odd" {
			t.Errorf("%q: %s, want %s", v, got, want)
		}
	}
}

func TestClientColumns(t *testing.T) {
	requests := []workload.Request{
		{Arrival: 1, InputTokens: 10, OutputTokens: 2, Replica: 1},
		{Arrival: clock.Time(clock.Second) + 7, InputTokens: 10, OutputTokens: 2,
			Client: &workload.Client{Cancel: clock.Second/4 + 1}},
		{Arrival: clock.Time(2 * clock.Second), InputTokens: 10, OutputTokens: 2, Replica: 12,
			Client: &workload.Client{Cancel: 1}},
		{Arrival: clock.Time(3 * clock.Second), InputTokens: 10, OutputTokens: 2},
		{Arrival: clock.Time(4 * clock.Second), InputTokens: 10, OutputTokens: 1, Replica: 1,
			Transfer: &workload.Transfer{Keeps: true}},
		{Arrival: clock.Time(5 * clock.Second), InputTokens: 10, OutputTokens: 2, Replica: 3,
			Transfer: &workload.Transfer{From: 1, Of: 4}},
	}
	var b bytes.Buffer
	w := NewWriter(&b, Columns{Cancel: true, KV: true}, nil)
	for i := range requests {
		if err := w.Write(&requests[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	rows, _, err := read(t, b.String(), Options{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	for i := range requests {
		was, got := requests[i], rows[i]
		if got.Arrival != was.Arrival || got.Replica != was.Replica || (got.Client == nil) != (was.Client == nil) ||
			got.Client != nil && *got.Client != *was.Client || (got.Transfer == nil) != (was.Transfer == nil) ||
			got.Transfer != nil && *got.Transfer != *was.Transfer {
			t.Errorf("row %d: %+v, was %+v\n%s", i, got, was, b.String())
		}
	}
	for text, want := range map[string]string{
		"0,5,5,x,,":    "is not a replica",
		"0,5,5,-1,,":   "is not a replica",
		"0,5,5,,x,":    "is not",
		"0,5,5,,-1,":   "is negative",
		"0,5,5,1,,x":   "says no KV",
		"0,5,5,1,,0:":  "says no KV",
		"0,5,5,1,,0:-": "says no KV",
		"0,5,5,1,,:1":  "says no KV",
	} {
		_, _, err := read(t, "arrival_s,input_tokens,output_tokens,replica,cancel_s,kv\n"+text+"\n", Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
