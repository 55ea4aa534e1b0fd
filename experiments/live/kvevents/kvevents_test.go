package kvevents

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/vmihailenco/msgpack/v5"
)

// freePort returns the first of n consecutive ports that are free, and n after them.
func freePort(t *testing.T, n int) int {
	t.Helper()
	for port := 23000; port < 60000; port += 2 * n {
		ok := true
		for k := range 2 * n {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+k))
			if err != nil {
				ok = false
				break
			}
			l.Close()
		}
		if ok {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}

// publisher opens a publisher of n replicas, with replays.
func publisher(t *testing.T, scenario string, n int, change func(*Options)) (p *Publisher, port int) {
	t.Helper()
	port = freePort(t, n)
	o := Options{Config: defaultConfig(), Output: output, Model: "m"}
	o.Enable, o.Topic = true, "kv@{replica}@{model}"
	o.Endpoint, o.ReplayEndpoint = fmt.Sprintf("tcp://*:%d", port), fmt.Sprintf("tcp://*:%d", port+n)
	if change != nil {
		change(&o)
	}
	p, err := New(setup(t, scenario), o)
	if err != nil {
		t.Fatal(err)
	}
	return p, port
}

// await waits until a condition holds.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("timeout: %s", what)
		}
	}
}

// subscribe connects a subscriber to each replica.
func subscribe(t *testing.T, p *Publisher, port int) (list []zmq4.Socket) {
	t.Helper()
	for i, r := range p.replicas {
		s := zmq4.NewSub(context.Background())
		t.Cleanup(func() { s.Close() })
		if err := s.Dial(fmt.Sprintf("tcp://127.0.0.1:%d", port+i)); err != nil {
			t.Fatal(err)
		}
		if err := s.SetOption(zmq4.OptionSubscribe, "kv@"); err != nil {
			t.Fatal(err)
		}
		await(t, "subscription", func() bool { return len(r.pub.(zmq4.Topics).Topics()) > 0 })
		list = append(list, s)
	}
	return list
}

// index is the blocks of a replica as a router knows them, by the engine's hash.
type index struct {
	blocks  map[uint64]block
	next    uint64 // sequence number
	cleared int
	stored  int
}

type block struct {
	parent uint64
	first  bool
	tokens []uint32
}

// hash and number decode integers, which MessagePack has in several sizes.
func hash(t *testing.T, v any) uint64 {
	t.Helper()
	h, ok := v.(uint64)
	if !ok {
		t.Fatalf("hash %v is a %T; llm-d wants 64 bits", v, v)
	}
	return h
}

func number(v any) uint32 {
	var n uint32
	_, _ = fmt.Sscan(fmt.Sprint(v), &n)
	return n
}

// fieldsOf returns the kind of an event and its fields by name, from either format.
func fieldsOf(t *testing.T, v any) (string, map[string]any) {
	t.Helper()
	if m, ok := v.(map[string]any); ok {
		return m["type"].(string), m
	}
	list := v.([]any)
	names := map[string][]string{
		"BlockStored": {"block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium",
			"lora_name"}, "BlockRemoved": {"block_hashes", "medium"}, "AllBlocksCleared": {}}[list[0].(string)]
	if len(list) != 1+len(names) {
		t.Fatalf("event %v has %d fields, want %v", list, len(list), names)
	}
	m := make(map[string]any)
	for k, name := range names {
		m[name] = list[1+k]
	}
	return list[0].(string), m
}

// apply follows a batch as llm-d and Dynamo do.
func (x *index) apply(t *testing.T, sequence []byte, payload []byte) {
	t.Helper()
	if n := binary.BigEndian.Uint64(sequence); n != x.next {
		t.Fatalf("sequence number %d, want %d", n, x.next)
	}
	x.next++
	var batch []any
	if err := msgpack.Unmarshal(payload, &batch); err != nil || len(batch) != 3 {
		t.Fatalf("batch %v: %v", batch, err)
	}
	if ts := batch[0].(float64); math.Abs(ts-float64(time.Now().Unix())) > 60 {
		t.Fatalf("time %v is not that of the wall clock", ts)
	}
	for _, e := range batch[1].([]any) {
		kind, f := fieldsOf(t, e)
		switch kind {
		case "AllBlocksCleared":
			clear(x.blocks)
			x.cleared++
		case "BlockRemoved":
			for _, h := range f["block_hashes"].([]any) {
				if _, ok := x.blocks[hash(t, h)]; !ok {
					t.Fatalf("an unknown block is removed: %v", h)
				}
				delete(x.blocks, hash(t, h))
			}
		case "BlockStored":
			x.store(t, f)
		default:
			t.Fatalf("event %v", e)
		}
	}
}

// store enters the blocks of an event.
func (x *index) store(t *testing.T, f map[string]any) {
	t.Helper()
	hashes, tokens, size := f["block_hashes"].([]any), f["token_ids"].([]any), int(number(f["block_size"]))
	if len(tokens) != size*len(hashes) || f["medium"] != "GPU" {
		t.Fatalf("%d tokens for %d blocks of %d on %v", len(tokens), len(hashes), size, f["medium"])
	}
	b := block{first: f["parent_block_hash"] == nil}
	if !b.first {
		b.parent = hash(t, f["parent_block_hash"])
	}
	for k, h := range hashes {
		b.tokens = nil
		for _, id := range tokens[k*size : (k+1)*size] {
			b.tokens = append(b.tokens, number(id))
		}
		if _, ok := x.blocks[hash(t, h)]; ok {
			t.Fatalf("block %v is stored twice", h)
		}
		x.blocks[hash(t, h)] = b
		x.stored++
		b.first, b.parent = false, hash(t, h)
	}
}

// check compares the index with the cache of the simulator, and the tokens of every chain of blocks with the texts.
func (x *index) check(t *testing.T, held []uint64, of *traffic) {
	t.Helper()
	if got := slices.Sorted(maps.Keys(x.blocks)); !slices.Equal(got, held) {
		t.Fatalf("%d blocks in the index, %d in the cache", len(got), len(held))
	}
	known := make(map[uint64]bool) // hashes of the beginnings of texts
	for i := range of.requests {
		h := uint64(0)
		for _, id := range of.text(i) {
			h = extend(h, id)
			known[h] = true
		}
	}
	for key := range x.blocks {
		var text []uint32
		whole := true
		for b, ok := x.blocks[key], true; ; b, ok = x.blocks[b.parent] {
			if !ok {
				whole = false // the block before was evicted
				break
			}
			if text = append(slices.Clone(b.tokens), text...); b.first {
				break
			}
		}
		h := uint64(0)
		for _, id := range text {
			h = extend(h, id)
		}
		if whole && !known[h] {
			t.Fatalf("block %d ends a text of %d tokens that no request has", key, len(text))
		}
	}
}

// extend extends the hash of a text by a token.
func extend(h uint64, id uint32) uint64 {
	h = (h ^ uint64(id)) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// evicting is a scenario whose caches are too small for the conversations.
const evicting = "model: llama-3.1-8b\ngpu: h100\ndeployment: {replicas: 2, router: round-robin}\n" +
	"engine: {policy: %s, num_gpu_blocks_override: 400, max_model_len: 4000%s}\n"

// TestSubscriber: a subscriber knows the blocks of each replica, with their tokens, in either format and from replicas
// that find blocks by hashes and in a radix tree.
func TestSubscriber(t *testing.T) {
	for _, c := range []struct {
		name, scenario, format string
		adapters               int32
	}{
		{"hashes", fmt.Sprintf(evicting, "vllm", ", enable_prefix_caching: true"), "", 0},
		{"array", fmt.Sprintf(evicting, "vllm", ", enable_prefix_caching: true"), formatArray, 2},
		{"radix", fmt.Sprintf(evicting, "sglang", ", block_size: 16"), "", 0},
		{"radix, adapters", fmt.Sprintf(evicting, "sglang", ", block_size: 16"), formatMap, 2},
		{"crash", fmt.Sprintf(evicting, "vllm", ", enable_prefix_caching: true") +
			"lifecycle: {failures: [{replica: 0, at: 3s, kind: crash, for: 1s}]}", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, port := publisher(t, c.scenario, 2, func(o *Options) { o.Format = c.format })
			subscribers := subscribe(t, p, port)
			x := conversations(1, 12, 6, c.adapters)
			o := run(t, setup(t, c.scenario), x, p)
			s := p.Stats()
			if len(p.book.blocks) > 3000 {
				t.Errorf("%d blocks in the book", len(p.book.blocks))
			}
			cleared := 0
			for i, sub := range subscribers {
				known := index{blocks: make(map[uint64]block)}
				for known.next < p.states[i].number {
					m, err := sub.Recv()
					if err != nil {
						t.Fatal(err)
					}
					if len(m.Frames) != 3 || string(m.Frames[0]) != fmt.Sprintf("kv@%d@m", i) {
						t.Fatalf("message %q", m.Frames)
					}
					known.apply(t, m.Frames[1], m.Frames[2])
				}
				known.check(t, o.keys(i), x)
				cleared += known.cleared
				if known.stored == len(known.blocks) {
					t.Errorf("replica %d: nothing was evicted", i)
				}
				replayed(t, port+2+i, o.keys(i), x, known.next)
			}
			if cleared != o.resets || s.Unknown+s.Dropped+s.Lost != 0 {
				t.Errorf("cleared %d times, %d resets, %+v", cleared, o.resets, s)
			}
			p.Close()
		})
	}
}

// replayed asks for all batches, and compares what they say.
func replayed(t *testing.T, port int, held []uint64, of *traffic, batches uint64) {
	t.Helper()
	d := zmq4.NewDealer(context.Background())
	defer d.Close()
	if err := d.Dial(fmt.Sprintf("tcp://127.0.0.1:%d", port)); err != nil {
		t.Fatal(err)
	}
	if err := d.SendMulti(zmq4.NewMsgFrom([]byte("x"))); err != nil { // is ignored
		t.Fatal(err)
	}
	if err := d.SendMulti(zmq4.NewMsgFrom(nil, make([]byte, 8))); err != nil {
		t.Fatal(err)
	}
	known := index{blocks: make(map[uint64]block)}
	for {
		m, err := d.Recv()
		if err != nil || len(m.Frames) != 3 {
			t.Fatalf("%q: %v", m.Frames, err)
		}
		if len(m.Frames[2]) == 0 {
			if binary.BigEndian.Uint64(m.Frames[1]) != math.MaxUint64 {
				t.Fatalf("the end has number %x", m.Frames[1])
			}
			break
		}
		known.apply(t, m.Frames[1], m.Frames[2])
	}
	if known.next != batches {
		t.Errorf("%d batches are replayed of %d", known.next, batches)
	}
	known.check(t, held, of)
}

// TestFields: the names, the order and the values of an event's fields.
func TestFields(t *testing.T) {
	c := []change{
		{kind: storedKind, keys: []uint64{1 << 63, 7}, parent: 5, place: 1, size: 2,
			text: &text{request: 3, prompt: []uint32{1, 2, 3}, adapter: 2}},
		{kind: storedKind, keys: []uint64{9}, size: 2, text: &text{prompt: []uint32{1, 2, 3}}},
		{kind: removedKind, keys: []uint64{8}}, {kind: clearedKind},
	}
	for asMap, want := range map[bool]string{
		false: `[1.5 [[BlockStored [9223372036854775808 7] 5 [3 1003000 1003001 1003002] 2 2 GPU a2] ` +
			`[BlockStored [9] <nil> [1 2] 2 <nil> GPU <nil>] [BlockRemoved [8] GPU] [AllBlocksCleared]] 4]`,
		true: `[1.5 [map[block_hashes:[9223372036854775808 7] block_size:2 extra_keys:[[a2] [a2]] group_idx:0 ` +
			`kv_cache_spec_kind:full_attention lora_id:2 lora_name:a2 medium:GPU parent_block_hash:5 ` +
			`token_ids:[3 1003000 1003001 1003002] type:BlockStored] ` +
			`map[block_hashes:[9] block_size:2 extra_keys:[<nil>] group_idx:0 kv_cache_spec_kind:full_attention ` +
			`lora_id:<nil> lora_name:<nil> medium:GPU parent_block_hash:<nil> token_ids:[1 2] type:BlockStored] ` +
			`map[block_hashes:[8] group_idx:0 medium:GPU type:BlockRemoved] map[type:AllBlocksCleared]] 4]`,
	} {
		e := encoder{asMap: asMap, rank: 4, output: output, adapter: func(n int32) string { return fmt.Sprint("a", n) }}
		var got any
		if err := msgpack.Unmarshal(e.batch(1.5, c), &got); err != nil || fmt.Sprint(got) != want {
			t.Errorf("map %v: %v, %v\nwant %s", asMap, got, err, want)
		}
	}
}

// TestParse: what a configuration may be, and what an error says.
func TestParse(t *testing.T) {
	c, err := Parse(`{"enable_kv_cache_events": true, "publisher": "zmq", "endpoint": "tcp://*:7000", "topic": "t"}`)
	if err != nil || !c.Enabled() || c.HWM != 100_000 || c.BufferSteps != 10_000 || c.Topic != "t" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := Parse(`{}`); err != nil || c.Enabled() {
		t.Errorf("%+v, %v: want no events", c, err)
	}
	for text, want := range map[string]string{
		`x`:                                   "write a JSON map such as",
		`{} {}`:                               "text after the JSON map",
		`{"hmw": 3}`:                          `unknown field "hmw"`,
		`{"hwm": "3"}`:                        "hwm is a string (want a int)",
		`{"hwm": 0}`:                          "hwm 0: write a number from 1 to",
		`{"publisher": "nats"}`:               `publisher "nats" is unknown: write zmq or null`,
		`{"endpoint": "ipc:///x"}`:            "write tcp://*:PORT to listen",
		`{"endpoint": "tcp://*:0"}`:           "write tcp://*:PORT to listen",
		`{"replay_endpoint": "tcp://*:5557"}`: "write another port",
		`{"format": "json"}`:                  "write map or array",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}
