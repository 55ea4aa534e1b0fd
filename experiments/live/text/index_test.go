package text

import (
	"fmt"
	"slices"
	"testing"

	"clifftop/workload"

	"pgregory.net/rapid"
)

// turnOf is a request of a random conversation, as the client knows it.
type turnOf struct {
	prompt, output []uint32
	placed         Placed
}

// blocks returns the keys of the full blocks of a prompt.
func blocks(p Placed, tokens int, size int32) (keys []uint64) {
	r := workload.Request{ID: 7, InputTokens: int32(tokens), OutputTokens: 1, Content: p.Content, Session: p.Session,
		Turn: p.Turn}
	walk := workload.NewBlockKeys(&r, size)
	for range tokens / int(size) {
		key, _ := walk.Next()
		keys = append(keys, key)
	}
	return keys
}

// common returns how many leading values a and b share.
func common[T comparable](a, b []T) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// TestIndexSharesTrueBlocks: two prompts have equal keys of exactly those blocks whose tokens, and all tokens before
// them, are equal, whatever the conversations do: branches, aborts, repeated prompts and unrelated ones.
func TestIndexSharesTrueBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := NewIndex(0)
		fresh := uint32(1000) // outputs begin with tokens that no other text has
		var turns []turnOf
		draw := func(label string, most int) []uint32 {
			return rapid.SliceOfN(rapid.Uint32Range(1, 3), 0, most).Draw(t, label)
		}
		system := draw("system", 80)
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			var prompt []uint32
			switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
			case kind == 0 || len(turns) == 0:
				prompt = slices.Concat(system, draw("question", 40))
			default:
				last := turns[rapid.IntRange(0, len(turns)-1).Draw(t, "after")]
				seen := len(last.output)
				if kind == 1 {
					seen = rapid.IntRange(0, seen).Draw(t, "seen before the abort")
				}
				prompt = slices.Concat(last.prompt, last.output[:seen])
				if kind != 3 {
					prompt = append(prompt, draw("reply", 40)...)
				}
			}
			fresh++
			u := turnOf{prompt: prompt, output: append([]uint32{fresh}, draw("output", 100)...)}
			u.placed = x.Prompt(prompt, "")
			if got := u.placed.Content.Tokens(); got != int64(len(prompt)) {
				t.Fatalf("content of %d tokens for a prompt of %d", got, len(prompt))
			}
			x.Output(u.placed.Session, u.placed.Turn, u.output)
			turns = append(turns, u)
		}
		taken := map[[2]int32]bool{}
		for i, a := range turns {
			if id := [2]int32{a.placed.Session, a.placed.Turn}; taken[id] {
				t.Fatalf("two requests are turn %d of session %d", id[1], id[0])
			} else {
				taken[id] = true
			}
			for _, b := range turns[:i] {
				for _, size := range []int32{16, 64} {
					got := common(blocks(a.placed, len(a.prompt), size), blocks(b.placed, len(b.prompt), size))
					if want := common(a.prompt, b.prompt) / int(size); got != want {
						t.Fatalf("%d shared blocks of %d tokens, want %d:\n%v %v\n%v %v", got, size, want,
							a.prompt, a.placed.Content, b.prompt, b.placed.Content)
					}
				}
			}
		}
	})
}

// TestIndexFindsOutput: a prompt that repeats a prompt and its output names the output as the simulator does.
func TestIndexFindsOutput(t *testing.T) {
	x := NewIndex(0)
	prompt, output := numbers(1, 40), numbers(100, 150)
	a := x.Prompt(prompt, "")
	x.Output(a.Session, a.Turn, output)
	for _, c := range []struct {
		name          string
		tokens        []uint32
		session, turn int32
		want          []int32 // tokens of the segments
		run           int     // the segment of the output
	}{
		{"all and more", slices.Concat(prompt, output, numbers(300, 20)), 1, 1, []int32{16, 16, 8, 150, 2, 16, 2}, 3},
		{"again", slices.Concat(prompt, output, numbers(400, 20)), 2, 0, []int32{16, 16, 8, 150, 2, 16, 2}, 3},
		{"part", slices.Concat(prompt, output[:70], numbers(300, 2)), 3, 0, []int32{16, 16, 8, 70, 2}, 3},
		{"less", slices.Concat(prompt, output[:1], numbers(300, 7)), 4, 0, []int32{16, 16, 8, 1, 7}, 3},
		{"other", slices.Concat(prompt, numbers(300, 8)), 5, 0, []int32{16, 16, 16}, -1},
	} {
		p := x.Prompt(c.tokens, "")
		var got []int32
		for i, s := range p.Content.Segments {
			got = append(got, s.Tokens)
			if is := s.ID == workload.OutputID(1, 0); is != (i == c.run) {
				t.Errorf("%s: segment %d is the output: %v", c.name, i, is)
			}
		}
		if p.Session != c.session || p.Turn != c.turn || !slices.Equal(got, c.want) {
			t.Errorf("%s: session %d, turn %d, segments %v; want %d, %d, %v", c.name, p.Session, p.Turn, got, c.session,
				c.turn, c.want)
		}
	}
}

// TestIndexTellsOutputs: outputs of the same prompt that begin with the same tokens are told apart by all their tokens.
// Equal outputs have one name.
func TestIndexTellsOutputs(t *testing.T) {
	x := NewIndex(0)
	prompt := numbers(1, 40)
	output := func(i uint32) []uint32 { return slices.Concat(numbers(100, 20), numbers(1000*(i+1), 13)) }
	for i := range uint32(10) {
		p := x.Prompt(prompt, "")
		x.Output(p.Session, p.Turn, output(i))
	}
	again := x.Prompt(prompt, "")
	x.Output(again.Session, again.Turn, output(7))
	for i := range uint32(10) {
		p := x.Prompt(slices.Concat(prompt, output(i), numbers(50, 9)), "")
		if s := p.Content.Segments[3]; s.ID != workload.OutputID(int32(i)+1, 0) || p.Session != int32(i)+1 || p.Turn != 1 {
			t.Errorf("output %d continues as turn %d of session %d, with the name %x", i, p.Turn, p.Session, s.ID)
		}
	}
}

func TestIndexKeys(t *testing.T) {
	x := NewIndex(0)
	a, b, c := x.Prompt(numbers(1, 20), "ann"), x.Prompt(numbers(50, 20), "bob"), x.Prompt(numbers(90, 5), "ann")
	got := fmt.Sprint(a.Session, a.Turn, b.Session, b.Turn, c.Session, c.Turn)
	if want := "1 0 2 0 1 1"; got != want {
		t.Errorf("sessions and turns %s, want %s", got, want)
	}
}

// TestIndexMemory: the index drops the oldest requests, and all that belongs to them.
func TestIndexMemory(t *testing.T) {
	const limit = 50_000
	x := NewIndex(limit)
	var first Placed
	for i := range uint32(2000) {
		p := x.Prompt(numbers(i*100, 40), fmt.Sprint("user ", i%500))
		if i == 0 {
			first = p
		}
		if i%3 > 0 {
			x.Output(p.Session, p.Turn, numbers(1<<20+i*50, int(i%90)))
		}
		if got := x.Bytes(); got > limit {
			t.Fatalf("%d bytes after request %d, want at most %d", got, i, limit)
		}
	}
	x.Output(first.Session, first.Turn, numbers(1, 9)) // dropped long ago
	if n := x.order.Len(); n < 20 || len(x.pending) > n || len(x.named) > n || len(x.keys) > 6*n || len(x.places) > 6*n {
		t.Errorf("%d requests, %d without output, %d named sessions, %d keys, %d places", n, len(x.pending), len(x.named),
			len(x.keys), len(x.places))
	}
	x.limit = 1
	p := x.Prompt(nil, "")
	x.Ended(p.Session, p.Turn)
	if n := len(x.pending) + len(x.named) + len(x.keys) + len(x.places); n != 0 || x.order.Len() != 1 {
		t.Errorf("%d entries are left of the requests that were dropped", n)
	}
}

// numbers returns n consecutive tokens.
func numbers(from uint32, n int) []uint32 {
	s := make([]uint32, n)
	for i := range s {
		s[i] = from + uint32(i)
	}
	return s
}

// BenchmarkIndex places the turns of conversations with prompts of about 4,000 tokens.
func BenchmarkIndex(b *testing.B) {
	x := NewIndex(0)
	prompt := numbers(0, 3800)
	i := uint32(1 << 20)
	for b.Loop() {
		i += 1000
		prompt[2000] = i
		p := x.Prompt(prompt, "")
		output := numbers(i, 200)
		x.Output(p.Session, p.Turn, output)
		next := slices.Concat(prompt, output)
		if q := x.Prompt(next, ""); q.Turn != 1 {
			b.Fatal("not continued")
		}
	}
}
