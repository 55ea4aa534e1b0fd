package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// examples has a text of every format and its rows: arrival in seconds, prompt and output tokens, and if present the
// session and turn, the class, the blocks of the prompt, and the following turns.
var examples = map[string]struct{ text, rows string }{
	"clifftop": {
		"# a comment\n# another\narrival_s,input_tokens,output_tokens,session,content,class,priority\n0.5,100,9,a,sys:64,chat,\n1,20,3,a,,,\n",
		"0.5 100 9 s1.0 chat b1; 1 20 3 s1.1",
	},
	"clifftop with adapters": {
		"arrival_s,input_tokens,output_tokens,session,lora,wait_s\n0,100,9,a,tuned,\n,120,3,a,,2\n1,20,3,,other,\n" +
			"2,5,1,,,\n3,7,1,,tuned,\n",
		"0 100 9 s1.0 lora1 then 2 120 3; 1 20 3 lora2; 2 5 1; 3 7 1 lora1",
	},
	"clifftop-record": {
		"# Recorded by clifftop record.\narrival_s,input_tokens,output_tokens,session,content,class,priority,cancel_s," +
			"outcome,status,received,counted,ttft_s,e2e_s,gap_mean_s,gap_p50_s,gap_p99_s,gap_max_s,cached_tokens,model\n" +
			"0,40,9,1,#00000000000000aa:16|#00000000000000ab:24,,,,completed,200,9,usage,0.03,0.1,0.01,0.01,0.01,0.01,0,m\n" +
			"0.5,40,0,2,#00000000000000aa:16,,,,rejected,429,0,text,,0.001,,,,,,m\n" +
			"1,60,50,1,#00000000000000aa:16|#00000000000000ab:24|@out:9,,,0.25,cancelled,200,3,chunks,0.1,0.2,,,,,,m\n",
		"0 40 9 s1.0 b2; 1 60 50 s1.1 b3",
	},
	"azure": {
		"TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\r\n2024-10-15T12:00:00.112Z,1,893,207\r\n2024-10-15T12:00:01.362Z,0,404,1",
		"0 893 207 image; 1.25 404 1 text",
	},
	"burstgpt": {
		"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
			"19440179,22234dbc,7.4,ChatGPT,206,272,478,Conversation log\n19440181,,0.96,GPT-4,447,23,470,API log\n19440181,,0.96,GPT-4,447,23,470,API log\n" +
			"19440182,,0.9,ChatGPT,447,0,447,API log\n19440183,,0.9,ChatGPT,0,0,0,API log\n19440190,22234dbc,0.9,ChatGPT,7,8,16,Conversation log\n",
		"0 206 272 s1.0 ChatGPT Conversation log; 2 447 23 GPT-4 API log; 2 447 23 GPT-4 API log; 11 7 8 s1.1 ChatGPT Conversation log",
	},
	"mooncake": {
		`{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [7, 8, 9]}` + "\n" +
			`{"timestamp": 1500, "input_length": 100, "output_length": 5, "hash_ids": [10]}`,
		"0 1100 5 b2; 1.5 100 5",
	},
	"bailian": {
		`{"chat_id": 3, "parent_chat_id": -1, "timestamp": 0.738, "input_length": 33, "output_length": 531, "type": "text", "turn": 1, "hash_ids": [54, 55]}
{"chat_id": 4, "parent_chat_id": -1, "timestamp": 0.75, "input_length": 15, "output_length": 53, "type": "search", "turn": 1, "hash_ids": []}
{"chat_id": 8, "parent_chat_id": 3, "timestamp": 2.5, "input_length": 49, "output_length": 83, "type": "text", "turn": 2, "hash_ids": [54, 55, 56, 99]}
{"chat_id": 9, "parent_chat_id": 8, "timestamp": 3, "input_length": 49, "output_length": 1, "type": "text", "turn": 3, "hash_ids": [54, 55, 56]}`,
		"0.738 33 531 s1.0 text b2; 0.75 15 53 s2.0 search; 2.5 49 83 s1.1 text b3; 3 49 1 s1.2 text b3",
	},
	"vidur": {"num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n3772,54,3826,69.8\n2015,156,2171,12.9\n",
		"0 3772 54; 0 2015 156"},
	"vidur with times": {"arrived_at,num_prefill_tokens,num_decode_tokens\n0.25,3772,54\n1e0,2015,156\n",
		"0.25 3772 54; 1 2015 156"},
	"splitwise": {"request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n" +
		"0,2,0,0.5,1,100,20\n1,2,7,0.75,1,90,2\n", "0.5 100 20 0; 0.75 90 2 7"},
	"llmservingsim": {
		`{"input_toks":34,"output_toks":70,"arrival_time_ns":46926808,"input_tok_ids":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,5,6],"output_tok_ids":[11,12]}
{"session_id": "a", "arrival_time_ns": 50000000, "sub_requests": [{"input_toks": 10, "output_toks": 20, "tool_duration_ns": 1500000000}, {"input_toks": 40, "output_toks": 5, "tool_duration_ns": 7}, {"input_toks": 50, "output_toks": 6}]}
{"input_toks":22,"output_toks":104,"arrival_time_ns":347938952}`,
		"0.046926808 34 70 b2; 0.05 10 20 s1.0 then 1.5 40 5 then 7e-09 50 6; 0.347938952 22 104",
	},
	"vllm-bench": {
		`{"date": "20261101-1", "backend": "vllm", "completed": 3, "total_input_tokens": 60, "total_output_tokens": 9, "input_lens": [10, 20, 30, 5], "start_times": [100.5, 100.25, 102.5, 103],
 "output_lens": [1, 3, 5, 0], "itls": [[0.1, "]"], [], [0.5], []], "generated_texts": ["a\"]}", "\\", "\u00e9", ""], "errors": ["", "", "", "Timeout"], "last": {"a": [1, {"b": null}]}}`,
		"0 20 3; 0.25 10 1; 2.25 30 5",
	},
	"vllm-bench without times": {`{"input_lens":[10,20],"output_lens":[1,3],"errors":["",""]}`, "0 10 1; 0 20 3"},
	"inference-perf": {
		`[{"start_time": 50.5, "end_time": 52, "request": "{\"prompt\": \"x\"}", "response": null, "info": {"input_tokens": 7, "output_tokens": 9, "output_token_times": [1, 2]}, "error": null},
{"start_time": 50, "end_time": 53, "request": "", "info": {"input_tokens": 8, "response_metrics": {"output_tokens": 4, "chunk_times": []}}, "error": null},
{"start_time": 51, "end_time": 53, "request": "", "info": null, "error": {"error_type": "Timeout", "error_msg": ""}}]`,
		"0 8 4; 0.5 7 9",
	},
}

// show prints rows as the examples have them.
func show(rows []Row, classes []string) string {
	var list []string
	for _, r := range rows {
		s := fmt.Sprint(r.Arrival.Seconds(), " ", r.InputTokens, " ", r.OutputTokens)
		if r.Session != 0 {
			s += fmt.Sprintf(" s%d.%d", r.Session, r.Turn)
		}
		if r.Adapter != 0 {
			s += fmt.Sprintf(" lora%d", r.Adapter)
		}
		if r.Class != 0 {
			s += " " + classes[r.Class]
		}
		if r.Content != nil {
			s += fmt.Sprintf(" b%d", len(r.Content.Segments))
		}
		for _, t := range r.Then {
			s += fmt.Sprintf(" then %v %d %d", t.Wait.Seconds(), t.InputTokens, t.OutputTokens)
		}
		list = append(list, s)
	}
	return strings.Join(list, "; ")
}

// TestFormats reads every format, recognized by its header or keys.
func TestFormats(t *testing.T) {
	seen := map[string]bool{"servegen": true} // which is a directory
	for name, x := range examples {
		format, _, _ := strings.Cut(name, " ")
		seen[format] = true
		for _, forced := range []string{"", format} {
			f, err := Open(strings.NewReader(x.text), "t", Options{Format: forced})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			rows, err := readAll(f)
			if got := show(rows, f.Classes()); err != nil || got != x.rows || f.Format() != format ||
				len(f.Warnings()) > 0 {
				t.Errorf("%s, told as %s: %v %v\n got %s\nwant %s", name, f.Format(), err, f.Warnings(), got, x.rows)
			}
			if timeless := strings.Contains(name, "without times") || name == "vidur"; f.Timeless() != timeless {
				t.Errorf("%s: timeless is %v", name, f.Timeless())
			}
			c := f.Counts()
			if sum := c.Accepted + c.Dropped[ZeroOut]; sum != c.Rows || format == "burstgpt" &&
				(c.Dropped[ZeroOut] != 2 || c.Noted[Total] != 1) {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
	for _, f := range Formats() {
		if !seen[f.Name] {
			t.Errorf("%s has no example", f.Name)
		}
	}
}

// TestFormatFaults: errors contain the line number.
func TestFormatFaults(t *testing.T) {
	const burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n"
	const chat = `{"chat_id": 3, "parent_chat_id": -1, "timestamp": 0.7, "input_length": 33, "output_length": 5, "type": "text", "turn": 1, "hash_ids": [54, 55]}` + "\n"
	const sim = `{"input_toks":10,"output_toks":70,"arrival_time_ns":5}` + "\n"
	for _, c := range []struct{ text, want string }{
		{burst + "6,GPT-5,1,1,2,API log\n", `t:3: CLASS: "GPT-5 API log" is an unknown kind`},
		{burst + "6,ChatGPT,1,1,x,API log\n", `t:3: INT: "x"`},
		{burst + "6,ChatGPT,0,1,1,API log\n", `t:3: ZERO_IN`},
		{burst + "2,ChatGPT,1,1,2,API log\n", `t:3: ORDER: "2,ChatGPT`},
		{burst + "2024-05-12 00:00:00,1,2\n", `t:3: FIELDS: "2024-05-12 00:00:00,1,2" has 3 columns (want 6)`},
		{burst + chat, `t:3: FIELDS`},
		{chat + strings.Replace(chat, "-1", "77", 1), `t:2: PARENT: "77" is an unknown chat`},
		{chat + strings.Replace(chat, "[54, 55]", "[54]", 1),
			`t:2: HASHLEN: "[54]" has 1 ids (want 3 ids for 33 tokens in blocks of 16; they would fit blocks of 64 or 128`},
		{chat + `{"timestamp": 1, "input_length": 3}`,
			`t:2: FIELDS: "{\"timestamp\": 1, \"input_length\": 3}" has no chat_id`},
		{chat + burst, `t:2: JSON: "Timestamp,Model`},
		{sim + `{"arrival_time_ns":6,"session_id":1,"sub_requests":[{"input_toks":1}]}`,
			`t:2: FIELDS: "{\"input_toks\":1}" has no output_toks`},
		{sim + `{"arrival_time_ns":6,"session_id":1,"sub_requests":[{"input_toks":1,"output_toks":1},{"input_toks":1,"output_toks":0}]}`, `t:2: RANGE`},
		{sim + `{"arrival_time_ns":6,"session_id":1,"sub_requests":[]}`, `t:2: FIELDS`},
		{sim + `{"arrival_time_ns":6,"sub_requests":[{"input_toks":1,"output_toks":1}]}`, `has no session_id`},
		{sim + `{"arrival_time_ns":6,"session_id":1,"sub_requests":[{"input_toks":1,"output_toks":1,"tool_duration_ns":-5}]}`, `t:2: TIME: "-5" is negative (want nanoseconds`},
		{sim + `{"arrival_time_ns":6,"session_id":1,"sub_requests":{"a":1}}`, `t:2: JSON: "{\"a\":1}" is not a list`},
		{"num_prefill_tokens,num_decode_tokens\n1,1.5\n", `t:2: INT: "1.5"`},
		{"arrival_timestamp,batch_size,prompt_size,token_size\n1,4,1,1\n", `t:2: RANGE: "4" is a batch`},
		{"{\n\"input_lens\": [1, 2],\n\"output_lens\": [3}", `t:3: JSON: "}" is unexpected here (want ',')`},
		{"{\"input_lens\": [1, 2],\n\"output_lens\": [3, 4], \"errors\": [\"", `t: the file is cut short in line 2`},
		{`{"input_lens": [1, 2], "output_lens": [3]}`,
			`t: FIELDS: 2 input_lens, 1 output_lens and 0 start_times differ in length`},
		{`{"input_lens": [1, 2.5], "output_lens": [3, 4]}`, `t:1: INT: "2.5"`},
		{`{"completed": 1, "total_input_tokens": 5, "total_output_tokens": 5}`,
			`only totals and no requests (want a result saved with --save-detailed)`},
		{"[{\"start_time\": 1, \"end_time\": 2, \"info\": {\"input_tokens\": 4, \"output_tokens\": 1}},\n {\"end_time\": 2, \"info\": {}}]", `t:2: FIELDS: "" has no start_time`},
		{`[1, 2]`, `t: FIELDS: "[1, 2]" is the list of no known format`},
		{"0,0.12,0.9377,Gamma,1.137,7.209\n", `is a rate file of a ServeGen client (want the directory`},
		{"\x28\xb5\x2f\xfdabc", `t: the file is compressed with zstd (want plain text or gzip)`},
		{"\x7fELF\x02\x01\x01\x00\x00", `t:1: FIELDS: "\x7fELF\x02\x01\x01\x00\x00" is the header of no known format`},
		{"TIMESTAMP,ContextTokens,GeneratedTokens\n\n2023-11-16 18:15:46,1,2\nTIMESTAMP,ContextTokens,GeneratedTokens\n", `t:4: TIME: "TIMESTAMP" is not a timestamp`},
	} {
		f, err := Open(strings.NewReader(c.text), "t", Options{})
		if err == nil {
			_, err = readAll(f)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestFormatFixes: mode fix repairs the rows that can be repaired.
func TestFormatFixes(t *testing.T) {
	rows, f, err := read(t, "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-5,1,1,2,API log\n4,ChatGPT,1,1,2,Batch log\n", Options{Mode: Fix})
	if err != nil || len(rows) != 2 || f.Counts().Fixed[Class] != 2 || f.Counts().Fixed[Order] != 1 ||
		!slices.Contains(f.Classes(), "GPT-5 API log") {
		t.Errorf("burstgpt: %v, %+v, %q", err, f.Counts(), f.Classes())
	}
	rows, f, err = read(t, `{"chat_id": 3, "parent_chat_id": 1, "timestamp": 0.7, "input_length": 33, "output_length": 5, "hash_ids": [54, 55]}`, Options{Mode: Fix})
	if err != nil || len(rows) != 1 || rows[0].Session != 1 || f.Counts().Fixed[Parent] != 1 {
		t.Errorf("bailian: %v, %+v", err, f.Counts())
	}
}

// TestBlockSize: IDs that fit a block size other than the configured one are reported.
func TestBlockSize(t *testing.T) {
	var b strings.Builder
	for i := range 50 {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": %d, "output_length": 5, "hash_ids": [%d, %d]}`+"\n", i,
			100+i%20, 2*i, 2*i+1)
	}
	_, f, err := read(t, b.String(), Options{Mode: Fix})
	if err != nil || fmt.Sprint(f.Warnings()) != "[t: the block ids fit blocks of 64 tokens instead of 512]" {
		t.Errorf("%v, %q", err, f.Warnings())
	}
	if _, f, err = read(t, b.String(), Options{BlockTokens: 64}); err != nil || len(f.Warnings()) > 0 {
		t.Errorf("%v, %q", err, f.Warnings())
	}
}

// TestSlice reads a part of a trace that is longer than a run may be.
func TestSlice(t *testing.T) {
	var b strings.Builder
	b.WriteString("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n")
	for day := range int64(110) {
		fmt.Fprintf(&b, "%d,ChatGPT,%d,1,%d,API log\n", 19440110+day*86400, day+1, day+2)
	}
	if _, _, err := read(t, b.String(), Options{}); err == nil || !strings.Contains(err.Error(), "t:103: TIME") ||
		!strings.Contains(err.Error(), "more than 100 days") {
		t.Errorf("the whole: %v", err)
	}
	for _, mode := range []Mode{Strict, Fix} {
		f, err := Open(strings.NewReader(b.String()), "t", Options{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		f.Slice(90*clock.Day+clock.Hour, 0)
		rows, err := readAll(f)
		if err != nil || len(rows) != 19 || rows[0].Arrival != clock.Time(23*clock.Hour) || rows[0].InputTokens != 92 ||
			f.Counts().Outside != 91 {
			t.Errorf("%s: the end: %v, %d rows, %+v", mode, err, len(rows), f.Counts())
		}
		f, _ = Open(strings.NewReader(b.String()), "t", Options{Mode: mode})
		f.Slice(clock.Day, 3*clock.Day)
		if rows, err = readAll(f); err != nil || len(rows) != 2 || rows[1].Arrival != clock.Time(clock.Day) {
			t.Errorf("%s: the middle: %v, %d rows", mode, err, len(rows))
		}
	}
}

// clients returns a directory of ServeGen's: a steady Gamma client, a bursty one that pauses, and one without lengths.
func clients() fstest.MapFS {
	var steady, bursty strings.Builder
	for w := range 144 {
		fmt.Fprintf(&steady, "%d,2,1.0,Gamma,1.0,0.5\n", w*600)
		if w%2 == 0 {
			fmt.Fprintf(&bursty, "%d,1,2.0,Weibull,0.5,0.5\n", w*600)
		} else {
			fmt.Fprintf(&bursty, "%d,0,0,,0,0\n", w*600)
		}
	}
	return fstest.MapFS{
		"chunk-3-trace.csv":     {Data: []byte(steady.String())},
		"chunk-3-dataset.json":  {Data: []byte(`{"0": {"input_tokens": "{100: 0.25, 200: 0.75}", "output_tokens": "{7: 1.0}", "reason_ratio": "{0.5: 1}"}, "43200": {"input_tokens": "{1000: 1.0}", "output_tokens": "{8: 1.0}"}, "64800": {"input_tokens": "{}", "output_tokens": "{}"}}`)},
		"chunk-12-trace.csv":    {Data: []byte(bursty.String())},
		"chunk-12-dataset.json": {Data: []byte(`{"0": {"input_tokens": "{5: 1.0}", "output_tokens": "{6: 1.0}"}}`)},
		"chunk-40-trace.csv":    {Data: []byte("0,0.5,1,Gamma,1,1\n")},
		"README":                {Data: []byte("x")},
	}
}

func TestServeGen(t *testing.T) {
	dir := clients()
	if !IsServeGen(dir) || IsServeGen(fstest.MapFS{"trace.csv": {}}) {
		t.Error("the directory is not told")
	}
	generate := func(seed uint64) ([]Row, *File) {
		f, err := OpenServeGen(dir, "dir", Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := readAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return rows, f
	}
	rows, f := generate(1)
	if got := fmt.Sprint(f.Classes(), f.Warnings()); got != "[ chunk-3 chunk-12] [dir: clients without lengths, 0.139 % of the requests, are left out]" {
		t.Error(got)
	}
	counts, inPause := map[uint16]int{}, 0
	lengths := map[int32]int{}
	for i, r := range rows {
		counts[r.Class]++
		lengths[r.InputTokens]++
		s := r.Arrival.Seconds()
		if r.Class == 2 && int(s/600)%2 == 1 {
			inPause++
		}
		if r.Class == 1 && (r.OutputTokens == 8) != (s >= 43200) {
			t.Fatalf("row %d: %d output tokens at %g s", i, r.OutputTokens, s)
		}
		if i > 0 && r.Arrival < rows[i-1].Arrival {
			t.Fatalf("row %d is out of order", i)
		}
	}
	// Counts have the variance of their law: n times the squared coefficient of variation, 1 and 5.
	near := func(what string, got, want, variance float64) {
		if d := got - want; d*d > 16*variance {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("Poisson client", float64(counts[1]), 172800, 172800)
	near("bursty client", float64(counts[2]), 43200, 5*43200)
	near("short prompts", float64(lengths[100]), 0.25*86400, 0.1875*86400+0.0625*86400)
	if inPause != 0 {
		t.Errorf("%d requests where the rate is 0", inPause)
	}
	again, _ := generate(1)
	other, _ := generate(2)
	if show(rows[:100], f.Classes()) != show(again[:100], f.Classes()) ||
		show(rows[:100], f.Classes()) == show(other[:100], f.Classes()) {
		t.Error("the seed does not decide")
	}
	for name, c := range map[string]struct{ file, text, want string }{
		"columns": {"chunk-3-trace.csv", "0,1\n", `dir/chunk-3-trace.csv:1: FIELDS`},
		"law":     {"chunk-3-trace.csv", "0,1,1,Pareto,1,1\n", `dir/chunk-3-trace.csv:1: CLASS: "Pareto"`},
		"shape": {"chunk-3-trace.csv", "\n0,1,1,Gamma,0,1\n",
			`dir/chunk-3-trace.csv:2: RANGE: "0" is not a shape`},
		"order":       {"chunk-3-trace.csv", "0,1,1,Gamma,1,1\n0,1,1,Gamma,1,1\n", `:2: ORDER`},
		"nothing":     {"chunk-3-trace.csv", "", `EMPTY`},
		"probability": {"chunk-3-dataset.json", `{"0": {"input_tokens": "{5: 2}"}}`, `JSON: "5: 2" is unexpected here`},
		"text":        {"chunk-3-dataset.json", `{"0": {"input_tokens": {"5": 2}}}`, `JSON`},
		"cut":         {"chunk-3-dataset.json", `{"0": {"input_tokens": "{5: 0.5`, `cut short`},
	} {
		bad := maps.Clone(dir)
		bad[c.file] = &fstest.MapFile{Data: []byte(c.text)}
		if _, err := OpenServeGen(bad, "dir", Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestConversation: parts of a session are sent when the previous output is complete and the tool has run.
func TestConversation(t *testing.T) {
	open := memory(`{"session_id": "a", "arrival_time_ns": 1000000000, "sub_requests": [{"input_toks": 10, "output_toks": 20, "tool_duration_ns": 1000000000}, {"input_toks": 40, "output_toks": 5, "tool_duration_ns": 2000000000}, {"input_toks": 50, "output_toks": 6}]}
{"input_toks":22,"output_toks":104,"arrival_time_ns":3000000000}`)
	for load, want := range map[string]struct {
		Load
		sent string
	}{
		"plain":    {Load{}, "1:10 3:22 12:40 24:50"}, // an output takes 10 s
		"speed-up": {Load{Speedup: 2}, "0.5:10 1.5:22 11:40 22:50"},
		"cap":      {Load{MaxTotal: 50}, "1:10 12:40"},
		"end":      {Load{Duration: 20 * clock.Second}, "1:10 3:22 12:40"},
		"loop":     {Load{Loop: 2}, "1:10 3:22 5:10 7:22 12:40 16:40 24:50 28:50"},
	} {
		s, err := Replay(open, want.Load)
		if err != nil {
			t.Fatal(err)
		}
		var sent []string
		var busy []workload.Request
		for {
			at, ok := s.Peek()
			if len(busy) > 0 && (!ok || busy[0].Arrival.Add(10*clock.Second) <= at) {
				r := busy[0]
				busy = busy[1:]
				s.Done(&r, workload.End{At: r.Arrival.Add(10 * clock.Second)})
				continue
			}
			if !ok {
				break
			}
			r := s.Next()
			busy = append(busy, r)
			sent = append(sent, fmt.Sprintf("%v:%d", r.Arrival.Seconds(), r.InputTokens))
		}
		if got := strings.Join(sent, " "); got != want.sent || s.Overlapping() != 0 {
			t.Errorf("%s: %s, want %s", load, got, want.sent)
		}
	}
}

// TestFarApart: mode fix sorts rows from before the first one read, but not when that makes the trace too long.
func TestFarApart(t *testing.T) {
	const head = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
	for earliest, want := range map[string]string{"5000000": "",
		"2700000": "t: TIME: a row is more than 100 days after the earliest"} {
		rows, _, err := read(t, head+"11000000,ChatGPT,1,1,2,API log\n"+earliest+",ChatGPT,1,1,2,API log\n12000000,ChatGPT,1,1,2,API log\n", Options{Mode: Fix})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil &&
			rows[2].Arrival != clock.Time(7000000*clock.Second) {
			t.Errorf("%s: %v", earliest, err)
		}
	}
}

// TestLongPrompt: a prompt longer than the text that is read to detect the format is skipped.
func TestLongPrompt(t *testing.T) {
	text := `[{"start_time": 1, "end_time": 2, "request": "` + strings.Repeat(`a\"]`,
		peekBytes) + `", "info": {"input_tokens": 7, "output_tokens": 9}, "error": null}]`
	f, err := Open(strings.NewReader(text), "t", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := readAll(f); err != nil || show(rows, nil) != "0 7 9" {
		t.Errorf("%v, %s", err, show(rows, nil))
	}
}
