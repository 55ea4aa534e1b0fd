package text

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"golang.org/x/text/unicode/norm"
)

// splitter cuts parts of a text into smaller parts. first means that the parts begin the whole text.
type splitter interface {
	split(parts []string, first bool) []string
}

// component is a normalizer, pre-tokenizer or post-processor of a tokenizer.json.
type component struct {
	Type        string            `json:"type"`
	Normalizers []json.RawMessage `json:"normalizers"`
	PreTokens   []json.RawMessage `json:"pretokenizers"`
	Processors  []json.RawMessage `json:"processors"`
	Decoders    []json.RawMessage `json:"decoders"`
	Pattern     struct {
		String *string `json:"String"`
		Regex  *string `json:"Regex"`
	} `json:"pattern"`
	Content        string `json:"content"`
	Prepend        string `json:"prepend"`
	Behavior       string `json:"behavior"`
	Invert         bool   `json:"invert"`
	AddPrefixSpace *bool  `json:"add_prefix_space"`
	UseRegex       *bool  `json:"use_regex"`
	PrependScheme  string `json:"prepend_scheme"`
	Replacement    string `json:"replacement"`
	Split          *bool  `json:"split"`
	Individual     bool   `json:"individual_digits"`
	Single         []struct {
		Special *struct {
			ID string `json:"id"`
		} `json:"SpecialToken"`
		Sequence *struct{} `json:"Sequence"`
	} `json:"single"`
}

// walk calls f for the component in data and those inside it.
func walk(data json.RawMessage, f func(component) error) error {
	var c *component
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return err
	}
	if c == nil {
		return nil
	}
	if c.Type != "Sequence" {
		return f(*c)
	}
	for _, list := range [][]json.RawMessage{c.Normalizers, c.PreTokens, c.Processors, c.Decoders} {
		for _, inner := range list {
			if err := walk(inner, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// readPipeline reads what happens to a text before its words are encoded.
func (v *Vocabulary) readPipeline(file *tokenizerFile) error {
	if err := walk(file.Normalizer, v.addNormalizer); err != nil {
		return fmt.Errorf("normalizer: %w", err)
	}
	if err := walk(file.PreTokenizer, v.addSplitter); err != nil {
		return fmt.Errorf("pre_tokenizer: %w", err)
	}
	return walk(file.Decoder, func(c component) error {
		v.byteLevel = v.byteLevel || c.Type == "ByteLevel"
		v.strip = v.strip || c.Type == "Strip" || c.Type == "Metaspace" && c.PrependScheme != "never"
		return nil
	})
}

func (v *Vocabulary) addNormalizer(c component) error {
	var f func(string) string
	switch {
	case c.Type == "NFC":
		f = norm.NFC.String
	case c.Type == "NFKC":
		f = norm.NFKC.String
	case c.Type == "Prepend":
		f = func(s string) string { return c.Prepend + s }
	case c.Type == "Replace" && c.Pattern.String != nil:
		f = strings.NewReplacer(*c.Pattern.String, c.Content).Replace
	default:
		return fmt.Errorf("%.40q is not supported (want NFC, NFKC, Prepend, or Replace of a string)", c.Type)
	}
	v.normalize = append(v.normalize, f)
	return nil
}

func (v *Vocabulary) addSplitter(c component) error {
	truth := func(b *bool) bool { return b == nil || *b }
	switch c.Type {
	case "ByteLevel":
		v.byteLevel = true
		if truth(c.AddPrefixSpace) {
			v.split = append(v.split, prefixSplitter{prefix: " "})
		}
		if truth(c.UseRegex) {
			return v.addPattern(gpt2Pattern)
		}
	case "Split":
		switch {
		case c.Pattern.Regex != nil && !c.Invert && c.Behavior == "Isolated":
			return v.addPattern(*c.Pattern.Regex)
		case c.Pattern.String != nil && !c.Invert && c.Behavior == "MergedWithPrevious" && *c.Pattern.String != "":
			v.split = append(v.split, funcSplitter(func(s string) []string {
				return strings.SplitAfter(s,
					*c.Pattern.String)
			}))
		default:
			return fmt.Errorf("split with behavior %.40q is not supported (want Isolated)", c.Behavior)
		}
	case "Digits":
		return v.addPattern(map[bool]string{false: `\p{N}+`, true: `\p{N}`}[c.Individual])
	case "Metaspace":
		v.split = append(v.split, funcSplitter(func(s string) []string {
			return []string{strings.ReplaceAll(s,
				" ", "▁")}
		}))
		if c.PrependScheme != "never" && (c.PrependScheme != "" || truth(c.AddPrefixSpace)) {
			v.split = append(v.split, prefixSplitter{prefix: "▁", onlyFirst: c.PrependScheme == "first"})
		}
		if truth(c.Split) {
			v.split = append(v.split, funcSplitter(splitBefore))
		}
	default:
		return fmt.Errorf("%.40q is not supported (want ByteLevel, Split, Digits or Metaspace)", c.Type)
	}
	return nil
}

// splitBefore cuts a text before each ▁.
func splitBefore(s string) (parts []string) {
	for {
		i := strings.Index(s[min(1, len(s)):], "▁")
		if i < 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:i+1])
		s = s[i+1:]
	}
}

// addWordSplitter cuts texts before spaces where no rule can join the two sides, because no token has the same
// characters at a border. It changes no token, and words are short.
func (v *Vocabulary) addWordSplitter() {
	joined := map[rune]bool{'▁': true} // characters before a space in a token
	for _, token := range v.texts {
		last := rune(-1)
		for _, r := range token {
			if r == '▁' && last >= 0 {
				joined[last] = true
			}
			last = r
		}
	}
	v.split = append(v.split, funcSplitter(func(s string) (parts []string) {
		from, last := 0, '▁'
		for i, r := range s {
			if r == '▁' && !joined[last] {
				parts = append(parts, s[from:i])
				from = i
			}
			last = r
		}
		return append(parts, s[from:])
	}))
}

// readBegin reads the tokens that the post-processor puts before a text.
func (v *Vocabulary) readBegin(data json.RawMessage) error {
	return walk(data, func(c component) error {
		if c.Type != "TemplateProcessing" {
			return nil
		}
		for _, part := range c.Single {
			if part.Special == nil {
				break
			}
			id, ok := v.added[part.Special.ID]
			if !ok {
				return fmt.Errorf("post_processor: %.40q is not among added_tokens", part.Special.ID)
			}
			v.begin = append(v.begin, id)
		}
		return nil
	})
}

// prefixSplitter puts a prefix before each part that lacks it.
type prefixSplitter struct {
	prefix    string
	onlyFirst bool // of the whole text
}

func (p prefixSplitter) split(parts []string, first bool) []string {
	out := make([]string, len(parts))
	for i, s := range parts {
		if !strings.HasPrefix(s, p.prefix) && (!p.onlyFirst || first && i == 0) {
			s = p.prefix + s
		}
		out[i] = s
	}
	return out
}

// funcSplitter cuts each part by a function.
type funcSplitter func(string) []string

func (f funcSplitter) split(parts []string, _ bool) (out []string) {
	for _, s := range parts {
		for _, p := range f(s) {
			if p != "" {
				out = append(out, p)
			}
		}
	}
	return out
}

// Patterns of pre-tokenizers that have a function of their own, because they are the most frequent ones and a regular
// expression takes ten times as long: GPT-2, and Llama 3 and Qwen, which differ in the digits of a part.
const (
	gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	beforeDigit = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}`
	afterDigit  = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// addPattern adds a splitter that isolates the matches of a regular expression.
func (v *Vocabulary) addPattern(pattern string) error {
	switch pattern {
	case beforeDigit + afterDigit:
		v.split = append(v.split, patternScanner{digits: 1})
		return nil
	case beforeDigit + "{1,3}" + afterDigit:
		v.split = append(v.split, patternScanner{digits: 3})
		return nil
	}
	re, err := regexp2.Compile(pattern)
	if err != nil {
		return fmt.Errorf("pattern: %v", err)
	}
	v.split = append(v.split, patternSplitter{re})
	return nil
}

// patternSplitter isolates the matches of a regular expression.
type patternSplitter struct{ re *regexp2.Regexp }

func (p patternSplitter) split(parts []string, _ bool) (out []string) {
	for _, s := range parts {
		matches, err := p.re.FindAllStringIndex(s, -1)
		if err != nil {
			matches = nil // too deep: the text is one word
		}
		at := 0
		for _, m := range matches {
			if m[0] > at {
				out = append(out, s[at:m[0]])
			}
			if m[1] > m[0] {
				out = append(out, s[m[0]:m[1]])
			}
			at = m[1]
		}
		if at < len(s) {
			out = append(out, s[at:])
		}
	}
	return out
}

// patternScanner does what the patterns of Llama 3 and Qwen say.
type patternScanner struct{ digits int }

func (p patternScanner) split(parts []string, _ bool) (out []string) {
	for _, s := range parts {
		for s != "" {
			n := p.match(s)
			out = append(out, s[:n])
			s = s[n:]
		}
	}
	return out
}

// kind is a kind of characters in patterns.
type kind uint8

const (
	other kind = iota
	letter
	number
	blank
	newline
	end // of the text
)

var asciiKind = func() (t [utf8.RuneSelf]kind) {
	for r := range rune(utf8.RuneSelf) {
		t[r] = kindOf(r)
	}
	return t
}()

func kindOf(r rune) kind {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return blank
	}
	return other
}

// kindAt returns the kind and the length of the character at byte i.
func kindAt(s string, i int) (kind, int) {
	if i >= len(s) {
		return end, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return asciiKind[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return kindOf(r), n
}

// endOfRun returns the end of the characters of a kind from byte i on, at most the given number of them.
func endOfRun(s string, i int, k kind, most int) int {
	for ; most > 0; most-- {
		c, n := kindAt(s, i)
		if c != k {
			break
		}
		i += n
	}
	return i
}

// match returns the length of the part at the start of s, which is not empty. The alternatives are in the order of the
// pattern.
func (p patternScanner) match(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	c, n := kindAt(s, 0)
	next, m := kindAt(s, n)
	switch {
	case c == letter:
		return endOfRun(s, n, letter, len(s))
	case (c == other || c == blank) && next == letter:
		return endOfRun(s, n+m, letter, len(s))
	case c == number:
		return endOfRun(s, 0, number, p.digits)
	case c == other:
		return endOfRun(s, endOfRun(s, 0, other, len(s)), newline, len(s))
	case s[0] == ' ' && next == other:
		return endOfRun(s, endOfRun(s, n, other, len(s)), newline, len(s))
	}
	// White space: up to its last line break, else all but its last character if more text follows.
	i, last, afterBreak := 0, 0, 0
	for c == blank || c == newline {
		last = i
		i += n
		if c == newline {
			afterBreak = i
		}
		c, n = kindAt(s, i)
	}
	if afterBreak > 0 {
		return afterBreak
	}
	if c == end || last == 0 {
		return i
	}
	return last
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd in small or capital letters at the start of s.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v', 'l':
		if len(s) > 2 && (s[2]|0x20 == 'e' && s[1]|0x20 != 'l' || s[2]|0x20 == 'l' && s[1]|0x20 == 'l') {
			return 3
		}
	}
	if strings.HasPrefix(s[1:], "ſ") { // folds to s
		return 3
	}
	return 0
}
