package text

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Vocabulary is a [Tokenizer] with the vocabulary of a model, from its tokenizer.json (the file of Hugging Face's
// tokenizers). It supports byte pair encoding over bytes, as in GPT-2, Llama 3 and Qwen, and over characters with
// bytes for the rest, as in Llama 2, Mistral and Gemma.
//
// Special tokens that occur in a text become their IDs, as in Hugging Face's tokenizers and vLLM.
type Vocabulary struct {
	ids       map[string]uint32 // by the text of a token; see texts
	texts     []string          // by ID: bytes of a byte-level vocabulary, else characters with ▁ for a space
	merges    merges
	added     map[string]uint32
	addedBy   [256][]addedToken // by the first byte; the longest ones first
	byteLevel bool
	bytes     [256]uint32 // the token of a byte, or none
	unknown   uint32      // or none
	fuse      bool        // neighbouring unknown characters are one token
	whole     bool        // a word that is a token is not merged
	strip     bool        // decoding removes the first space
	normalize []func(string) string
	split     []splitter
	begin     []uint32

	mu    sync.RWMutex
	words map[string][]uint32 // words seen, with their tokens
}

// addedToken is a special token. White space beside it may belong to it.
type addedToken struct {
	Content string `json:"content"`
	ID      uint32 `json:"id"`
	LStrip  bool   `json:"lstrip"`
	RStrip  bool   `json:"rstrip"`
}

// none is no token.
const none = 1<<32 - 1

// maxTokenID is the maximum ID of a token in a vocabulary.
const maxTokenID = 1 << 22

// Encode implements [Tokenizer].
func (v *Vocabulary) Encode(text string) []uint32 {
	ids := make([]uint32, 0, len(text)/3+4)
	text = strings.ToValidUTF8(text, "\ufffd")
	from, first := 0, true
	for at := 0; at < len(text); {
		t := v.addedAt(text[at:])
		if t == nil {
			at++
			continue
		}
		section := text[from:at]
		if t.LStrip {
			section = strings.TrimRight(section, " \t\r\n")
		}
		ids = append(v.section(ids, section, first), t.ID)
		at += len(t.Content)
		if t.RStrip {
			at = len(text) - len(strings.TrimLeft(text[at:], " \t\r\n"))
		}
		from, first = at, false
	}
	return v.section(ids, text[from:], first)
}

// Count implements [Tokenizer].
func (v *Vocabulary) Count(text string) int { return len(v.Encode(text)) }

// Special implements [Tokenizer].
func (v *Vocabulary) Special(name string) (uint32, bool) {
	id, ok := v.added[name]
	return id, ok
}

// Begin implements [Tokenizer].
func (v *Vocabulary) Begin() []uint32 { return v.begin }

// Decode returns the text of tokens. IDs that the vocabulary lacks have none.
func (v *Vocabulary) Decode(ids []uint32) string {
	var s strings.Builder
	for _, id := range ids {
		if int(id) >= len(v.texts) {
			continue
		}
		text := v.texts[id]
		if b, ok := fallbackByte(text); ok && !v.byteLevel {
			s.WriteByte(b)
			continue
		}
		if !v.byteLevel {
			text = strings.ReplaceAll(text, "▁", " ")
		}
		s.WriteString(text)
	}
	text := s.String()
	if v.strip {
		text = strings.TrimPrefix(text, " ")
	}
	return text
}

// addedAt returns the special token at the start of a text, or nil.
func (v *Vocabulary) addedAt(text string) *addedToken {
	list := v.addedBy[text[0]]
	for i := range list {
		if strings.HasPrefix(text, list[i].Content) {
			return &list[i]
		}
	}
	return nil
}

// section appends the tokens of a text without special tokens. first means that it begins the whole text.
func (v *Vocabulary) section(ids []uint32, text string, first bool) []uint32 {
	if text == "" {
		return ids
	}
	for _, f := range v.normalize {
		text = f(text)
	}
	parts := []string{text}
	for _, s := range v.split {
		parts = s.split(parts, first)
	}
	for _, word := range parts {
		ids = v.word(ids, word)
	}
	return ids
}

// Words up to this length are kept with their tokens, up to this number of words.
const (
	keptLength = 48
	keptWords  = 1 << 16
)

// word appends the tokens of a word.
func (v *Vocabulary) word(ids []uint32, word string) []uint32 {
	if len(word) > keptLength {
		return append(ids, v.encodeWord(word)...)
	}
	v.mu.RLock()
	known, ok := v.words[word]
	v.mu.RUnlock()
	if ok {
		return append(ids, known...)
	}
	known = slices.Clip(v.encodeWord(word))
	v.mu.Lock()
	if len(v.words) >= keptWords {
		clear(v.words)
	}
	v.words[strings.Clone(word)] = known
	v.mu.Unlock()
	return append(ids, known...)
}

func (v *Vocabulary) encodeWord(word string) []uint32 {
	if id, ok := v.ids[word]; ok && v.whole {
		return []uint32{id}
	}
	ids := make([]uint32, 0, len(word))
	if v.byteLevel {
		for i := range len(word) {
			if id := v.bytes[word[i]]; id != none {
				ids = append(ids, id)
			}
		}
		return v.merges.apply(ids)
	}
	for i := 0; i < len(word); {
		_, n := utf8.DecodeRuneInString(word[i:])
		ids = v.character(ids, word[i:i+n])
		i += n
	}
	return v.merges.apply(ids)
}

// character appends the tokens of a character: itself, its bytes, or the unknown token.
func (v *Vocabulary) character(ids []uint32, c string) []uint32 {
	if id, ok := v.ids[c]; ok {
		return append(ids, id)
	}
	known := true
	for i := range len(c) {
		known = known && v.bytes[c[i]] != none
	}
	switch {
	case known:
		for i := range len(c) {
			ids = append(ids, v.bytes[c[i]])
		}
	case v.unknown != none && !(v.fuse && len(ids) > 0 && ids[len(ids)-1] == v.unknown):
		ids = append(ids, v.unknown)
	}
	return ids
}

// fallbackByte returns the byte of a token such as <0x0A>.
func fallbackByte(token string) (byte, bool) {
	var b byte
	if len(token) != 6 || token[:3] != "<0x" || token[5] != '>' {
		return 0, false
	}
	if _, err := fmt.Sscanf(token[3:5], "%02X", &b); err != nil {
		return 0, false
	}
	return b, true
}

// tokenizerFile is the part of tokenizer.json that matters here.
type tokenizerFile struct {
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         struct {
		Type         string            `json:"type"`
		Vocab        json.RawMessage   `json:"vocab"`
		Merges       []json.RawMessage `json:"merges"`
		Unknown      *string           `json:"unk_token"`
		Fuse         bool              `json:"fuse_unk"`
		ByteFallback bool              `json:"byte_fallback"`
		IgnoreMerges bool              `json:"ignore_merges"`
		Prefix       string            `json:"continuing_subword_prefix"`
		Suffix       string            `json:"end_of_word_suffix"`
	} `json:"model"`
}

// NewVocabulary reads a tokenizer.json. It reports an error for a kind of tokenizer that it does not support.
func NewVocabulary(data []byte) (*Vocabulary, error) {
	var file tokenizerFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("not a tokenizer.json: %v", err)
	}
	m := &file.Model
	if m.Type != "BPE" && (m.Type != "" || len(m.Merges) == 0) {
		return nil, fmt.Errorf("model.type: %.40q is not supported (want BPE)", m.Type)
	}
	if m.Prefix != "" || m.Suffix != "" {
		return nil, fmt.Errorf("model: prefixes and suffixes of words are not supported (want byte-level or " +
			"metaspace BPE)")
	}
	v := &Vocabulary{
		added: map[string]uint32{}, fuse: m.Fuse, whole: m.IgnoreMerges, unknown: none, words: map[string][]uint32{},
	}
	steps := []func() error{
		func() error { return v.readPipeline(&file) },
		func() error { return v.readVocab(&file) },
		func() error { return v.readMerges(m.Merges) },
		func() error { return v.readAdded(file.AddedTokens) },
		func() error { return v.readBegin(file.PostProcessor) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if v.byteLevel {
		v.unalias()
	} else {
		v.addWordSplitter()
	}
	return v, nil
}

// readVocab reads the tokens of the model. Their names stay as in the file until [Vocabulary.unalias].
func (v *Vocabulary) readVocab(file *tokenizerFile) error {
	if err := json.Unmarshal(file.Model.Vocab, &v.ids); err != nil || len(v.ids) == 0 {
		return fmt.Errorf("model.vocab: want an object with the ID of each token")
	}
	for name, id := range v.ids {
		if int(id) < len(v.texts) && v.texts[id] != "" {
			return fmt.Errorf("model.vocab: two tokens have ID %d", id)
		}
		if err := v.set(id, name); err != nil {
			return fmt.Errorf("model.vocab: %w", err)
		}
	}
	if u := file.Model.Unknown; u != nil {
		if id, ok := v.ids[*u]; ok {
			v.unknown = id
		}
	}
	for b := range v.bytes {
		name := fmt.Sprintf("<0x%02X>", b)
		if v.byteLevel {
			name = string(byteAlphabet[b])
		}
		id, ok := v.ids[name]
		if !ok || !v.byteLevel && !file.Model.ByteFallback {
			id = none
		}
		v.bytes[b] = id
	}
	return nil
}

func (v *Vocabulary) set(id uint32, text string) error {
	if id > maxTokenID {
		return fmt.Errorf("token %.40q has ID %d (want at most %d)", text, id, maxTokenID)
	}
	for int(id) >= len(v.texts) {
		v.texts = append(v.texts, make([]string, 1+len(v.texts))...)
	}
	v.texts[id] = text
	return nil
}

// readMerges reads the rules: "a b" or ["a", "b"].
func (v *Vocabulary) readMerges(list []json.RawMessage) error {
	v.merges = make(merges, len(list))
	for rank, data := range list {
		var pair []string
		if json.Unmarshal(data, &pair) != nil {
			var joined string
			if json.Unmarshal(data, &joined) == nil {
				pair = strings.Split(joined, " ")
			}
		}
		if len(pair) != 2 {
			return fmt.Errorf("model.merges[%d]: %.60s is no pair of tokens", rank, data)
		}
		left, ok := v.ids[pair[0]]
		right, ok2 := v.ids[pair[1]]
		id, ok3 := v.ids[pair[0]+pair[1]]
		if !ok || !ok2 || !ok3 {
			return fmt.Errorf("model.merges[%d]: %.60s has a token that model.vocab lacks", rank, data)
		}
		key := [2]uint32{left, right}
		if _, ok := v.merges[key]; !ok {
			v.merges[key] = merge{uint32(rank), id}
		}
	}
	return nil
}

func (v *Vocabulary) readAdded(list []addedToken) error {
	for _, t := range list {
		if t.Content == "" {
			continue
		}
		name := t.Content
		if v.byteLevel {
			name = aliased(name)
		}
		if err := v.set(t.ID, name); err != nil {
			return fmt.Errorf("added_tokens: %w", err)
		}
		v.added[t.Content] = t.ID
		first := t.Content[0]
		v.addedBy[first] = append(v.addedBy[first], t)
	}
	for _, list := range v.addedBy {
		slices.SortStableFunc(list, func(a, b addedToken) int { return len(b.Content) - len(a.Content) })
	}
	return nil
}

// unalias replaces the names of tokens of a byte-level vocabulary by their bytes.
func (v *Vocabulary) unalias() {
	bytes := map[rune]byte{}
	for b, r := range byteAlphabet {
		bytes[r] = byte(b)
	}
	var buffer []byte
	text := func(name string) string {
		buffer = buffer[:0]
		for _, r := range name {
			b, ok := bytes[r]
			if !ok {
				return name
			}
			buffer = append(buffer, b)
		}
		return string(buffer)
	}
	ids := make(map[string]uint32, len(v.ids))
	for name, id := range v.ids {
		ids[text(name)] = id
	}
	v.ids = ids
	for id, name := range v.texts {
		v.texts[id] = text(name)
	}
}

// byteAlphabet has the character that stands for each byte in byte-level vocabularies: printable characters of
// Latin-1 for themselves, others from U+0100 on (GPT-2).
var byteAlphabet = func() (table [256]rune) {
	next := rune(256)
	for b := range table {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			table[b] = rune(b)
		} else {
			table[b] = next
			next++
		}
	}
	return table
}()

func aliased(text string) string {
	var s strings.Builder
	for i := range len(text) {
		s.WriteRune(byteAlphabet[text[i]])
	}
	return s.String()
}
