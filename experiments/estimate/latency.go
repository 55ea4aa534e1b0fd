package estimate

import (
	"fmt"
	"math"

	"clifftop/report"
)

// Stream is the timing of a streamed output.
type Stream struct {
	TTFTSeconds float64
	Speed       Speed
}

// Output is an output and its reader.
type Output struct {
	Tokens int
	Stream
	// Against is another system to compare with; nil for none.
	Against *Stream
	// WordsPerMinute and TokensPerWord give the reading speed. CharsPerToken gives a speed in characters, unless it is
	// 0. It depends on tokenizer and language.
	WordsPerMinute, TokensPerWord, CharsPerToken float64
}

// Defaults: a common reading speed, and tokens per English word.
const (
	ReadingWordsPerMinute = 250
	TokensPerWord         = 1.3
)

// seconds returns the time to the last of n tokens, which have n-1 gaps.
func (s Stream) seconds(n int) float64 { return s.TTFTSeconds + float64(n-1)*float64(s.Speed) }

// rule returns the time by the rule of thumb, which counts n gaps for n tokens.
func (s Stream) rule(n int) float64 { return s.TTFTSeconds + float64(n)*float64(s.Speed) }

func (s Stream) validate() error {
	if !(s.TTFTSeconds >= 0) || math.IsInf(s.TTFTSeconds, 0) {
		return fmt.Errorf("a time to first token of %v s is not allowed (want 0 or more)", s.TTFTSeconds)
	}
	if !(s.Speed > 0) || math.IsInf(float64(s.Speed), 0) {
		return fmt.Errorf("a time per token of %v s is not allowed (want above 0)", float64(s.Speed))
	}
	return nil
}

// Latency estimates the duration of one output and compares it with the reading speed.
func Latency(a Output) (*Result, error) {
	if a.Tokens < 1 || a.Tokens > 1e9 {
		return nil, fmt.Errorf("%d tokens are not allowed (want 1 to 1e9)", a.Tokens)
	}
	for _, s := range []*Stream{&a.Stream, a.Against} {
		if s == nil {
			continue
		}
		if err := s.validate(); err != nil {
			return nil, err
		}
	}
	finite := !math.IsInf(a.WordsPerMinute*a.TokensPerWord*(1+a.CharsPerToken), 0)
	if !(a.WordsPerMinute > 0 && a.TokensPerWord > 0 && a.CharsPerToken >= 0 && finite) {
		return nil, fmt.Errorf("%v words per minute with %v tokens per word are not allowed (want above 0)",
			a.WordsPerMinute, a.TokensPerWord)
	}
	r := newResult("latency", fmt.Sprintf("an output of %d tokens: the first after %s s, then %s tokens/s",
		a.Tokens, amount(a.TTFTSeconds), amount(a.Speed.TokensPerSecond())))
	r.stream(a.Stream, a.Tokens, "")
	r.reading(a)
	r.usual(a.Stream)
	if a.Against != nil {
		r.against(a)
	}
	r.note("n tokens have n - 1 gaps between them. The rule of thumb counts n gaps, one too many, which matters " +
		"for short outputs.")
	r.note("The reading speed is a lower limit for the stream, not a target: a reader who skims or copies the " +
		"output, and a program that uses it, wait for the last token.")
	return r, nil
}

// stream adds the timing of one system. The names end with the suffix.
func (r *Result) stream(s Stream, n int, suffix string) {
	bands := report.DefaultProfile()
	r.given("ttft_ms"+suffix, "time to first token", s.TTFTSeconds*1000, "ms")
	r.Lines[len(r.Lines)-1].Says = bands.TTFT.Name(s.TTFTSeconds * 1000)
	line := r.add("tpot_ms"+suffix, "time per token", s.Speed.Milliseconds(), "ms", "1000 / tokens per second",
		"1000 / "+amount(s.Speed.TokensPerSecond()))
	line.Says = bands.TPOT.Name(s.Speed.Milliseconds())
	r.add("tokens_per_s"+suffix, "speed of the stream", s.Speed.TokensPerSecond(), "tokens/s",
		"1000 / time per token in ms", "1000 / "+amount(s.Speed.Milliseconds()))
	r.add("e2e_s"+suffix, "time to the last token", s.seconds(n), "s",
		"time to first token + (tokens - 1) × time per token",
		fmt.Sprintf("%s + (%d - 1) × %s", amount(s.TTFTSeconds), n, amount(float64(s.Speed))))
	r.add("e2e_rule_of_thumb_s"+suffix, "the same by the rule of thumb", s.rule(n), "s",
		"time to first token + tokens / speed",
		fmt.Sprintf("%s + %d / %s", amount(s.TTFTSeconds), n, amount(s.Speed.TokensPerSecond())))
}

// reading compares the stream with the reading speed.
func (r *Result) reading(a Output) {
	speed := a.WordsPerMinute / 60 * a.TokensPerWord
	r.add("reading_tokens_per_s", "reading speed", speed, "tokens/s", "words per minute / 60 × tokens per word",
		fmt.Sprintf("%s / 60 × %s", amount(a.WordsPerMinute), amount(a.TokensPerWord)))
	r.add("reading_ms_per_token", "time to read a token", 1000/speed, "ms", "1000 / reading speed",
		"1000 / "+amount(speed))
	line := r.add("pace_surplus", "stream relative to reading", a.Speed.TokensPerSecond()/speed, "×",
		"speed of the stream / reading speed",
		fmt.Sprintf("%s / %s", amount(a.Speed.TokensPerSecond()), amount(speed)))
	line.Says = "the reader waits for the stream"
	if *line.Value >= 1 {
		line.Says = "the stream is ahead of the reader"
	}
	r.add("words_per_s", "words per second", a.Speed.TokensPerSecond()/a.TokensPerWord, "words/s",
		"speed of the stream / tokens per word",
		fmt.Sprintf("%s / %s", amount(a.Speed.TokensPerSecond()), amount(a.TokensPerWord)))
	if a.CharsPerToken > 0 {
		r.add("chars_per_s", "characters per second", a.Speed.TokensPerSecond()*a.CharsPerToken, "chars/s",
			"speed of the stream × characters per token",
			fmt.Sprintf("%s × %s", amount(a.Speed.TokensPerSecond()), amount(a.CharsPerToken)))
		r.note("Characters per token depend on the tokenizer and the language: " +
			"about 4 for English, 1 to 2 for Chinese.")
	}
}

// usual adds the durations of typical outputs.
func (r *Result) usual(s Stream) {
	for _, k := range report.Answers() {
		line := r.add("e2e_"+k.Name+"_s", fmt.Sprintf("%s, %d tokens", k.Name, k.Tokens), s.seconds(k.Tokens), "s",
			"time to first token + (tokens - 1) × time per token",
			fmt.Sprintf("%s + (%d - 1) × %s", amount(s.TTFTSeconds), k.Tokens, amount(float64(s.Speed))))
		line.Says = fmt.Sprintf("%s; range %s to %s s", k.Judge(*line.Value), amount(k.LowS), amount(k.HighS))
	}
}

// against adds another system and compares the two.
func (r *Result) against(a Output) {
	b := *a.Against
	r.stream(b, a.Tokens, "_against")
	r.add("saved_s", "time saved by the other system", a.seconds(a.Tokens)-b.seconds(a.Tokens), "s",
		"difference of the times to the last token",
		fmt.Sprintf("%s - %s", amount(a.seconds(a.Tokens)), amount(b.seconds(a.Tokens))))
	dTTFT, dTPOT := b.TTFTSeconds-a.TTFTSeconds, float64(a.Speed-b.Speed)
	if dTTFT*dTPOT > 0 {
		r.add("break_even_tokens", "equal duration at", 1+dTTFT/dTPOT, "tokens",
			"1 + difference of the times to first token / difference of the times per token",
			fmt.Sprintf("1 + %s / %s", amount(dTTFT), amount(dTPOT)))
	}
}
