// Package text turns the text of requests into token IDs, and token IDs into the content by which prefix caches
// compare prompts. [Estimate] is a tokenizer, [Template] makes the prompt of a conversation, [Index] finds what a prompt repeats
// of earlier ones, and [Filler] writes outputs.
package text
