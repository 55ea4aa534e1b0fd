package text

// Tokenizer turns text into token IDs. Implementations are safe for concurrent use.
type Tokenizer interface {
	// Encode returns the token IDs of text.
	Encode(text string) []uint32
	// Count returns the number of tokens of text.
	Count(text string) int
	// Special returns the ID of the special token with the given name, such as <|im_start|>.
	Special(name string) (id uint32, ok bool)
	// Begin returns the tokens before the text of a completion, such as <s>; usually none.
	Begin() []uint32
}
