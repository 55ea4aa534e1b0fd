package text

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// trained returns a tokenizer.json: the given document with a vocabulary whose merges join the most frequent pairs
// of neighbouring tokens in the words of a text.
func trained(words []string, alphabet func(string) []string, rules int, document string) []byte {
	vocab, merges := map[string]int{}, []string{}
	add := func(token string) {
		if _, ok := vocab[token]; !ok {
			vocab[token] = len(vocab)
		}
	}
	for b := range 256 {
		add(string(byteAlphabet[b]))
		add(fmt.Sprintf("<0x%02X>", b))
	}
	split := make([][]string, len(words))
	for i, w := range words {
		split[i] = alphabet(w)
		for _, c := range split[i] {
			add(c)
		}
	}
	for range rules {
		counts := map[[2]string]int{}
		best := [2]string{}
		for _, w := range split {
			for i := 1; i < len(w); i++ {
				pair := [2]string{w[i-1], w[i]}
				counts[pair]++
				n, most := counts[pair], counts[best]
				if n > most || n == most && slices.Compare(pair[:], best[:]) < 0 {
					best = pair
				}
			}
		}
		if best[0] == "" {
			break
		}
		merges = append(merges, best[0]+" "+best[1])
		add(best[0] + best[1])
		for k, w := range split {
			split[k] = joinPairs(w, best)
		}
	}
	model, err := json.Marshal(map[string]any{"type": "BPE", "vocab": vocab, "merges": merges, "byte_fallback": true})
	if err != nil {
		panic(err)
	}
	pattern, err := json.Marshal(beforeDigit + afterDigit)
	if err != nil {
		panic(err)
	}
	return []byte(strings.NewReplacer("MODEL", string(model), "PATTERN", string(pattern)).Replace(document))
}

// joinPairs joins all pairs in a word, from left to right.
func joinPairs(word []string, pair [2]string) (out []string) {
	for i := 0; i < len(word); i++ {
		if i+1 < len(word) && word[i] == pair[0] && word[i+1] == pair[1] {
			out = append(out, pair[0]+pair[1])
			i++
		} else {
			out = append(out, word[i])
		}
	}
	return out
}

// Documents of the two families.
const (
	byteLevelDocument = `{"model": MODEL, "added_tokens": [{"id": 20000, "content": "<|im_start|>"},
		{"id": 20001, "content": "<|im_end|>"}, {"id": 20002, "content": "<|pad|>", "rstrip": true, "lstrip": true}],
		"normalizer": {"type": "NFC"}, "decoder": {"type": "ByteLevel"},
		"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "behavior": "Isolated",
		"pattern": {"Regex": PATTERN}},
		{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}}`
	metaspaceDocument = `{"model": MODEL, "added_tokens": [{"id": 20000, "content": "<s>"}],
		"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
		{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}, "pre_tokenizer": null,
		"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
		{"Sequence": {"id": "A", "type_id": 0}}]},
		"decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Strip", "content": " "}]}}`
)

// vocabularies returns one of each family, trained on the words of filler.
var vocabularies = sync.OnceValue(func() map[string]*Vocabulary {
	var spaced, bare []string
	for w := range strings.FieldsSeq(openers + " " + words) {
		bare = append(bare, w)
		spaced = append(spaced, " "+w)
	}
	all := slices.Concat(spaced, bare)
	bytes := func(w string) (out []string) {
		for i := range len(w) {
			out = append(out, string(byteAlphabet[w[i]]))
		}
		return out
	}
	runes := func(w string) []string { return strings.Split(strings.ReplaceAll(w, " ", "▁"), "") }
	out := map[string]*Vocabulary{}
	for name, data := range map[string][]byte{
		"byte level": trained(all, bytes, 2000, byteLevelDocument),
		"metaspace":  trained(spaced, runes, 2000, metaspaceDocument),
	} {
		v, err := NewVocabulary(data)
		if err != nil {
			panic(name + ": " + err.Error())
		}
		out[name] = v
	}
	return out
})

func TestVocabularyFiller(t *testing.T) {
	for name, v := range vocabularies() {
		t.Run(name, func(t *testing.T) { testFiller(t, v); testNextTurn(t, v) })
	}
}

// TestVocabularyEncodes: words are cut by the rules, special tokens are found, and other bytes have tokens.
func TestVocabularyEncodes(t *testing.T) {
	vs := vocabularies()
	for _, c := range []struct{ name, text, want string }{
		{"byte level", " the windows", " the| window|s"},
		{"byte level", "the 12\n", "the| |1|2|\n"},
		{"byte level", "a<|im_end|> the <|pad|> the", "a|<|im_end|>| the|<|pad|>|the"},
		{"byte level", "é\xff", "\xc3|\xa9|\xef|\xbf|\xbd"},
		{"metaspace", "the windows", "▁the|▁window|s"},
		{"metaspace", "  the", "▁|▁|▁the"},
		{"metaspace", "<s>of☃", "<s>|▁of|<0xE2>|<0x98>|<0x83>"},
	} {
		v := vs[c.name]
		var got []string
		for _, id := range v.Encode(c.text) {
			got = append(got, v.texts[id])
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%s: %q is %q, want %q", c.name, c.text, s, c.want)
		}
	}
	if got := vs["metaspace"].Begin(); !slices.Equal(got, []uint32{20000}) {
		t.Errorf("a text begins with %v, want <s>", got)
	}
}

// TestMerges: both ways to apply the rules do what defines them: the rule with the lowest rank goes first, from the
// left.
func TestMerges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := merges{}
		for i := range rapid.Uint32Range(0, 12).Draw(t, "rules") {
			token := rapid.Uint32Range(0, 2+i)
			pair := [2]uint32{token.Draw(t, "left"), token.Draw(t, "right")}
			if _, ok := rules[pair]; !ok {
				rules[pair] = merge{i, 3 + i}
			}
		}
		word := rapid.SliceOfN(rapid.Uint32Range(0, 2), 0, 60).Draw(t, "word")
		want := slices.Clone(word)
		for {
			at, rank := 0, uint32(noRank)
			for i := 1; i < len(want); i++ {
				if r, ok := rules[[2]uint32{want[i-1], want[i]}]; ok && r.rank < rank {
					at, rank = i, r.rank
				}
			}
			if at == 0 {
				break
			}
			want = slices.Concat(want[:at-1], []uint32{rules[[2]uint32{want[at-1], want[at]}].id}, want[at+1:])
		}
		if got := rules.apply(slices.Clone(word)); !slices.Equal(got, want) {
			t.Fatalf("%v becomes %v, want %v", word, got, want)
		}
		if got := rules.applyQueue(slices.Clone(word)); !slices.Equal(got, want) {
			t.Fatalf("%v becomes %v in a queue, want %v", word, got, want)
		}
	})
}

// TestPatternScanner: the functions for known patterns do what the regular expressions do.
func TestPatternScanner(t *testing.T) {
	alphabet := rapid.SampledFrom([]string{"a", "Z", "é", "世", "1", "٣", "½", ".", "'", "-", "😀", " ", "  ", "\n", "\r",
		"\t", "\u00a0", "\u3000", "\u200b", "'s", "'LL", "'Re", "'ve", "'x", "\u0301", "\x00"})
	patterns := map[int]*regexp2.Regexp{
		1: regexp2.MustCompile(beforeDigit + afterDigit), 3: regexp2.MustCompile(beforeDigit + "{1,3}" + afterDigit),
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(alphabet, 0, 20).Draw(t, "text"), "")
		for digits, re := range patterns {
			want := patternSplitter{re}.split([]string{text}, true)
			if got := (patternScanner{digits}).split([]string{text}, true); !slices.Equal(got, want) {
				t.Fatalf("%q has parts %q, want %q", text, got, want)
			}
		}
	})
}

func FuzzVocabulary(f *testing.F) {
	vs := vocabularies()
	for _, s := range []string{"the window", "a\xff\xc3", "  \n x", "<s><|im_end|>", "你好 Größe 12345", "e\u0301"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := vs["byte level"].Decode(vs["byte level"].Encode(s))
		valid := strings.ToValidUTF8(s, "\ufffd")
		if !strings.Contains(s, "<|pad|>") && norm.NFC.String(got) != norm.NFC.String(valid) {
			t.Fatalf("%q becomes %q", s, got)
		}
		got = vs["metaspace"].Decode(vs["metaspace"].Encode(s))
		if !strings.Contains(s, "<") && !strings.Contains(s, "▁") && got != valid || !utf8.ValidString(got) {
			t.Fatalf("%q becomes %q", s, got)
		}
	})
}

func TestVocabularyFaults(t *testing.T) {
	for _, c := range []struct{ document, want string }{
		{`[]`, "not a tokenizer.json"},
		{`{"model": {"type": "Unigram", "vocab": []}}`, `model.type: "Unigram" is not supported (want BPE)`},
		{`{"model": {"type": "BPE", "vocab": {}}}`, "model.vocab"},
		{`{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}`, "model.merges[0]"},
		{`{"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}}}`, "two tokens have ID 0"},
		{`{"model": {"type": "BPE", "vocab": {"a": 4194305}}}`, "want at most 4194304"},
		{`{"model": {"type": "BPE", "vocab": {"a": 0}, "end_of_word_suffix": "</w>"}}`, "suffixes"},
		{`{"model": {"type": "BPE", "vocab": {"a": 0}}, "pre_tokenizer": {"type": "BertPreTokenizer"}}`, "pre_tokenizer"},
		{`{"model": {"type": "BPE", "vocab": {"a": 0}}, "normalizer": {"type": "Lowercase"}}`, "normalizer"},
		{`{"model": {"type": "BPE", "vocab": {"a": 0}}, "pre_tokenizer": {"type": "Split", "behavior": "Isolated",
			"pattern": {"Regex": "("}}}`, "pattern"},
	} {
		if _, err := NewVocabulary([]byte(c.document)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.document, err, c.want)
		}
	}
}

// TestVocabularyOfModels compares IDs with those of other programs. CLIFFTOP_TOKENIZERS is a folder with a folder for
// each model: its tokenizer.json, and cases.json, a list of objects with text and ids, without tokens at the start.
func TestVocabularyOfModels(t *testing.T) {
	folder := os.Getenv("CLIFFTOP_TOKENIZERS")
	if folder == "" {
		t.Skip("needs CLIFFTOP_TOKENIZERS")
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*", "tokenizer.json"))
	if len(files) == 0 {
		t.Fatalf("no tokenizer.json in %s", folder)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			v, err := NewVocabulary(data)
			if err != nil {
				t.Fatal(err)
			}
			var cases []struct {
				Text string   `json:"text"`
				IDs  []uint32 `json:"ids"`
			}
			data, err = os.ReadFile(filepath.Join(filepath.Dir(file), "cases.json"))
			if err == nil {
				err = json.Unmarshal(data, &cases)
			}
			if err != nil || len(cases) == 0 {
				t.Fatalf("%d cases: %v", len(cases), err)
			}
			for _, c := range cases {
				if got := v.Encode(c.Text); !slices.Equal(got, c.IDs) {
					t.Errorf("%q has IDs %v, want %v", c.Text, got, c.IDs)
				}
			}
			testFiller(t, v)
			testNextTurn(t, v)
		})
	}
}

func BenchmarkVocabulary(b *testing.B) {
	v := vocabularies()["byte level"]
	s := source(b)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		v.Encode(s)
	}
}

// TestVocabularyConcurrent: a vocabulary may be used by many goroutines.
func TestVocabularyConcurrent(t *testing.T) {
	v := vocabularies()["byte level"]
	want := v.Encode(words)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if !slices.Equal(v.Encode(words), want) {
				t.Error("concurrent calls change the tokens")
			}
		})
	}
	wait.Wait()
}
