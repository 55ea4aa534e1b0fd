package text

import (
	"unicode"
	"unicode/utf8"
)

// Estimate is a [Tokenizer] without a vocabulary. It splits text as the pre-tokenizers of byte-level BPE vocabularies
// do, and cuts long words into pieces of fixed lengths. The ID of a piece is a hash of its bytes, so that equal text
// has equal IDs. The package comment has the accuracy of its counts.
//
// The pieces are:
//   - a word: letters with at most one character before them that is neither a letter, a digit nor a line break, such
//     as a space. A capital letter after a small one begins another word. The first piece of a word after a space has
//     at most 10 bytes, of other words at most 5; then follow pieces of at most 3 bytes;
//   - Han, Kana and Hangul letters: two, one, one, then two again, and so on;
//   - up to 3 digits;
//   - punctuation: up to 3 characters with at most one space before them and the line breaks after them, or up to 16
//     equal characters; other symbols, and bytes that are not UTF-8, are pieces of their own;
//   - white space that ends with a line break, or that precedes the last space before a word.
//
// Encode(a+b) is Encode(a) followed by Encode(b) if b begins with a space before a word, a digit after a letter, or at
// any other border between these kinds.
type Estimate struct{}

// Lengths of pieces, in bytes except for digits.
const (
	spacedWord = 10 // first piece of a word, with the space before it
	bareWord   = 5  // first piece of another word, with the symbol before it
	restOfWord = 3  // further pieces
	digits     = 3
	symbols    = 3  // punctuation characters of a piece
	repeated   = 16 // equal punctuation characters of a piece
	spaces     = 64 // white space of a piece
)

// Encode implements [Tokenizer].
func (Estimate) Encode(text string) []uint32 {
	ids := make([]uint32, 0, len(text)/4+4)
	for p := (pieces{text: text}); p.next(); {
		ids = append(ids, pieceID(text[p.start:p.end]))
	}
	return ids
}

// Count implements [Tokenizer].
func (Estimate) Count(text string) int {
	n := 0
	for p := (pieces{text: text}); p.next(); {
		n++
	}
	return n
}

// Special implements [Tokenizer]. Every name has an ID, which no text has by intent.
func (Estimate) Special(name string) (uint32, bool) { return pieceID("\xff" + name), true }

// Begin implements [Tokenizer].
func (Estimate) Begin() []uint32 { return nil }

// pieceID is FNV-1a with 64 bits, mixed and folded.
func pieceID(s string) uint32 {
	h := uint64(0xcbf29ce484222325)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	h ^= h >> 29
	h *= 0xbf58476d1ce4e5b9
	return uint32(h >> 32)
}

// class is a kind of characters.
type class uint8

const (
	symbol    class = iota // punctuation and all else
	small                  // letters except for capital ones and wide ones
	capital                // capital letters
	wide                   // Han, Kana, Hangul
	digit                  // numbers
	space                  // white space except for line breaks
	lineBreak              // CR and LF
)

func (c class) letter() bool { return c == small || c == capital || c == wide }

func asciiClass(c byte) class {
	switch {
	case 'a' <= c && c <= 'z':
		return small
	case 'A' <= c && c <= 'Z':
		return capital
	case '0' <= c && c <= '9':
		return digit
	case c == '\r' || c == '\n':
		return lineBreak
	case c == ' ' || c == '\t' || c == '\v' || c == '\f':
		return space
	}
	return symbol
}

func classOf(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return lineBreak
	case unicode.IsUpper(r):
		return capital
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) && unicode.IsLetter(r):
		return wide
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return small
	case unicode.IsNumber(r):
		return digit
	case unicode.IsSpace(r):
		return space
	}
	return symbol
}

// pieces iterates over the pieces of a text. The zero value with a text stands before the first one.
type pieces struct {
	text       string
	start, end int   // the current piece
	word       class // the kind of word that goes on after end: capital for any but wide ones, else symbol
	last       class // of the last letter of that word
	pair       int   // counts the pieces of a run of wide letters: one of three has two
}

// at returns the class and the length of the character at byte i; the length is 0 at the end.
func (p *pieces) at(i int) (class, int) {
	if i >= len(p.text) {
		return symbol, 0
	}
	if c := p.text[i]; c < utf8.RuneSelf {
		return asciiClass(c), 1
	}
	r, n := utf8.DecodeRuneInString(p.text[i:])
	return classOf(r), n
}

func (p *pieces) next() bool {
	p.start = p.end
	c, n := p.at(p.start)
	if n == 0 {
		return false
	}
	if p.word != symbol && c.letter() && p.goesOn(c) {
		p.letters(restOfWord)
		return true
	}
	p.word, p.pair = symbol, 0
	switch {
	case c.letter():
		p.letters(bareWord)
	case c == digit:
		p.digits()
	case c == space || c == lineBreak:
		p.spaces(c, n)
	default:
		p.prefixed(n)
	}
	return true
}

// goesOn reports whether a letter of class c belongs to the word before it.
func (p *pieces) goesOn(c class) bool {
	if (p.word == wide) != (c == wide) {
		return false
	}
	return c != capital || p.last == capital
}

// letters ends a piece with letters up to the given number of bytes after the start. At least one is in it.
func (p *pieces) letters(bytes int) {
	i := p.end
	c, n := p.at(i)
	if c == wide {
		i += n
		if p.pair%3 == 0 {
			if c, n = p.at(i); c == wide && n > 0 {
				i += n
			}
		}
		p.word, p.last, p.pair, p.end = wide, wide, p.pair+1, i
		return
	}
	for limit := p.start + bytes; ; {
		i += n
		p.word, p.last = capital, c
		if c, n = p.at(i); n == 0 || i+n > limit || !c.letter() || !p.goesOn(c) {
			p.end = i
			return
		}
	}
}

func (p *pieces) digits() {
	for range digits {
		c, n := p.at(p.end)
		if c != digit || n == 0 {
			return
		}
		p.end += n
	}
}

// prefixed ends a piece that begins with a symbol or a space, of n bytes: letters or symbols follow it.
func (p *pieces) prefixed(n int) {
	first := p.text[p.start]
	if c, m := p.at(p.start + n); m > 0 && c.letter() && (c != wide || first < utf8.RuneSelf) {
		p.end = p.start + n
		if first == ' ' {
			p.letters(spacedWord)
		} else {
			p.letters(bareWord)
		}
		return
	}
	p.end = p.start
	if first == ' ' {
		p.end++
	}
	p.symbols()
}

// symbols ends a piece of symbols, with the line breaks after them.
func (p *pieces) symbols() {
	from := p.end
	_, n := p.at(from)
	p.end += n
	if n > 1 {
		return // a character outside ASCII
	}
	first, equal := p.text[from], true
	if first >= utf8.RuneSelf {
		return // not UTF-8
	}
	for p.end < len(p.text) && p.text[p.end] < utf8.RuneSelf && asciiClass(p.text[p.end]) == symbol {
		equal = equal && p.text[p.end] == first
		if n := p.end - from; n >= repeated || !equal && n >= symbols {
			break
		}
		p.end++
	}
	for p.end < len(p.text) && (p.text[p.end] == '\n' || p.text[p.end] == '\r') && p.end-from < spaces {
		p.end++
	}
}

// spaces ends a piece that begins with white space of class c and n bytes.
func (p *pieces) spaces(c class, n int) {
	i, lastLength, afterBreak := p.start, 0, 0
	for n > 0 && (c == space || c == lineBreak) && i-p.start < spaces {
		i += n
		lastLength = n
		if c == lineBreak {
			afterBreak = i
		}
		c, n = p.at(i)
	}
	switch {
	case afterBreak > 0:
		p.end = afterBreak
	case n == 0 || c == space || c == lineBreak:
		p.end = i
	case i-lastLength > p.start:
		p.end = i - lastLength // the last space belongs to the next part
	case c.letter() || c == symbol && p.text[p.start] == ' ':
		p.prefixed(lastLength)
	default:
		p.end = i
	}
}
