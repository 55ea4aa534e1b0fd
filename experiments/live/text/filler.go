package text

import (
	"fmt"
	"slices"
	"strings"
)

// Filler writes outputs: English words in sentences without meaning. Token k of the output of a request depends on the
// seed, the number of the request and k only. Each token is one piece of text, the pieces join to the whole text, and
// the [Tokenizer] encodes the whole text as exactly these tokens.
//
// An output begins and ends without white space. A Filler is safe for concurrent use.
type Filler struct {
	seed   uint64
	first  []piece // openers at the start of the text
	opener []piece // openers after a space
	word   []piece
	comma  []piece
	stop   []piece
}

// piece is a token with its text.
type piece struct {
	id   uint32
	text string
}

// sentences are the forms of 16 tokens: O is an opener, w a word.
var sentences = [...]string{
	"Owwwww,wwwwwwww.",
	"Owwwwww.Owwwwww.",
	"Owww.Owwwwwwwww.",
	"Owwwwwwww.Owwww.",
	"Oww,wwwwwwwwwww.",
	"Owwww,wwww.Owww.",
}

// minPieces is the number of words and of openers that a vocabulary must have as single tokens.
const minPieces = 8

// NewFiller makes the filler of a seed. It uses the words that are single tokens for the tokenizer, and reports an
// error if there are too few.
func NewFiller(t Tokenizer, seed uint64) (*Filler, error) {
	f := &Filler{seed: mix(seed)}
	for w := range strings.FieldsSeq(openers) {
		if ids := t.Encode(w); len(ids) == 1 {
			f.first = append(f.first, piece{ids[0], w})
		}
	}
	if len(f.first) < minPieces {
		return nil, fmt.Errorf("tokenizer: %d of our words begin a text as single tokens (want %d or more)",
			len(f.first), minPieces)
	}
	for w := range strings.FieldsSeq(openers) {
		f.opener = f.follow(t, f.opener, " "+w)
	}
	for w := range strings.FieldsSeq(words) {
		f.word = f.follow(t, f.word, " "+w)
	}
	f.comma, f.stop = f.follow(t, nil, ","), f.follow(t, nil, ".")
	if len(f.opener) < minPieces || len(f.word) < minPieces || len(f.comma) == 0 || len(f.stop) == 0 {
		return nil, fmt.Errorf("tokenizer: %d of our words follow a space as single tokens (want %d or more, and of "+
			"punctuation)", min(len(f.opener), len(f.word)), minPieces)
	}
	return f, f.check(t)
}

// follow appends a text to a list if it is a single token after the first opener.
func (f *Filler) follow(t Tokenizer, to []piece, text string) []piece {
	ids := t.Encode(f.first[0].text + text)
	if len(ids) != 2 || ids[0] != f.first[0].id {
		return to
	}
	return append(to, piece{ids[1], text})
}

// check encodes all pairs of pieces that may be neighbours.
func (f *Filler) check(t Tokenizer) error {
	var text strings.Builder
	var want []uint32
	add := func(list []piece, i int) {
		p := list[i%len(list)]
		text.WriteString(p.text)
		want = append(want, p.id)
	}
	for i := range f.word {
		text.Reset()
		want = want[:0]
		add(f.first, i)
		for k := range f.word {
			add(f.word, i)
			add(f.word, k)
		}
		for k := range f.opener {
			add(f.comma, 0)
			add(f.word, i)
			add(f.stop, 0)
			add(f.opener, k)
			add(f.word, i)
		}
		if got := t.Encode(text.String()); !slices.Equal(got, want) {
			return fmt.Errorf("tokenizer: it merges tokens across words: %q has %d tokens, not %d",
				text.String()[:40], len(got), len(want))
		}
	}
	return nil
}

// mix applies the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Token returns token k of the output of a request, and its text.
func (f *Filler) Token(request int64, k int) (id uint32, text string) {
	key := mix(f.seed + uint64(request)*0x9e3779b97f4a7c15)
	form := sentences[mix(key^uint64(k/16)<<32)%uint64(len(sentences))]
	var list []piece
	switch form[k%16] {
	case 'O':
		list = f.opener
		if k == 0 {
			list = f.first
		}
	case 'w':
		list = f.word
	case ',':
		list = f.comma
	default:
		list = f.stop
	}
	p := list[mix(key+uint64(k)+1)%uint64(len(list))]
	return p.id, p.text
}

// Output returns the first n tokens of the output of a request, and their text.
func (f *Filler) Output(request int64, n int) ([]uint32, string) {
	ids := make([]uint32, 0, n)
	var text strings.Builder
	for k := range n {
		id, piece := f.Token(request, k)
		ids = append(ids, id)
		text.WriteString(piece)
	}
	return ids, text.String()
}

// Ending says where an output ends.
type Ending struct {
	// Tokens is the number of tokens that the server computes.
	Tokens int
	// Text is the length of the text that the client gets, in bytes.
	Text int
	// Stop is the stop string that ends the output; empty if the output has all its tokens.
	Stop string
}

// End returns where the output of a request with n tokens ends under stop strings, as in vLLM: generation ends with the
// token that completes a stop string, once there are more than least tokens. The text ends before the stop string, or
// after it if include is set. Of several strings that one token completes, the first one in the list counts.
func (f *Filler) End(request int64, n, least int, stops []string, include bool) Ending {
	var text []byte
	for k := range n {
		before := len(text)
		_, piece := f.Token(request, k)
		text = append(text, piece...)
		if k+1 <= least {
			continue
		}
		for _, s := range stops {
			from := max(0, before+1-len(s))
			i := strings.Index(string(text[from:]), s)
			if i < 0 || s == "" {
				continue
			}
			i += from
			if include {
				i += len(s)
			}
			return Ending{Tokens: k + 1, Text: i, Stop: s}
		}
	}
	return Ending{Tokens: n, Text: len(text)}
}
