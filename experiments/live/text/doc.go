// Package text turns the text of requests into token IDs, and token IDs into the content by which prefix caches
// compare prompts.
//
// [Estimate] and [Vocabulary] are tokenizers, [Template] makes the prompt of a conversation, [Index] finds what a
// prompt repeats of earlier ones, and [Filler] writes outputs.
//
// # Accuracy of the estimate
//
// The number of tokens by the estimate, against the vocabularies of o200k (GPT-4o), cl100k (GPT-4), Llama 3 and Qwen3.
// Each text has 300 to 400 kB: English quotations, German and Chinese manual pages of Linux, the source of Go and
// Python, and JSON files of programs.
//
//	text      characters for a token   o200k   cl100k   Llama 3   Qwen3
//	English   4.0                       -2 %     -4 %      -4 %    -6 %
//	German    4.0                       -6 %    -18 %     -18 %   -18 %
//	Chinese   1.9                       -4 %    -23 %      -5 %    +2 %
//	Go        3.1                       +3 %     +3 %      +3 %    -2 %
//	Python    3.9                       +3 %     +4 %      +4 %    +3 %
//	JSON      2.3                       -5 %     -6 %      -6 %   -15 %
//
// The Chinese text is mixed with English words and symbols: Han letters alone have 1.3 letters for a token. Smaller
// vocabularies have more tokens: that of Llama 2 has 22 to 43 % more than the estimate for these texts.
package text
