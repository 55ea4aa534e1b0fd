package workload

// Images are the images of a prompt. Each takes Tokens tokens of the prompt; the first one begins at token At.
type Images struct {
	Count, Tokens, At int32
}

// In returns how many images begin among n tokens of the prompt from token from on. The iteration that computes these
// tokens encodes them.
func (x Images) In(from, n int32) (count int32) {
	if x.Count == 0 {
		return 0
	}
	begun := func(before int64) int64 { // images that begin before a token
		return max(0, min(int64(x.Count), (before-int64(x.At)+int64(x.Tokens)-1)/int64(x.Tokens)))
	}
	return int32(begun(int64(from)+int64(n)) - begun(int64(from)))
}

// ImageSpec says which requests have images. They follow the part of the prompt that other requests share, and are not
// part of the history of a conversation. The zero value is no images.
type ImageSpec struct {
	// Share is the fraction of requests that have images.
	Share float64 `yaml:"share" json:"share"`
	// Count is the number of images of such a request, Tokens the tokens of each in the prompt.
	Count  int32 `yaml:"count" json:"count"`
	Tokens int32 `yaml:"tokens" json:"tokens"`
}

// maxImageTokens is the maximum number of tokens of the images of a prompt.
const maxImageTokens = 1 << 24

func (x ImageSpec) check(f *fieldFaults) {
	if x == (ImageSpec{}) {
		return
	}
	if !(x.Share > 0 && x.Share <= 1) {
		f.add("workload.images.share", "%v is not allowed (want above 0, at most 1)", x.Share)
	}
	if x.Count < 1 || x.Tokens < 1 || int64(x.Count)*int64(x.Tokens) > maxImageTokens {
		f.add("workload.images.count", "%d images of %d tokens are not allowed (want 1 or more, with at most %d "+
			"tokens)", x.Count,
			x.Tokens, maxImageTokens)
	}
}

func withImages(src Source, x ImageSpec, seed uint64) Source {
	return &imageSource{src, x, NewRNG(seed, purposeImages)}
}

type imageSource struct {
	Source
	ImageSpec
	draws *RNG
}

// Next implements [Source].
func (s *imageSource) Next() Request {
	r := s.Source.Next()
	s.draws.Seek(uint64(r.ID), 0)
	if uniform(s.draws) >= s.Share {
		return r
	}
	r.Images = Images{Count: s.Count, Tokens: s.Tokens, At: r.InputTokens}
	if r.Content != nil {
		r.Images.At = int32(min(int64(r.InputTokens), r.Content.Tokens()))
	}
	r.InputTokens = int32(min(int64(r.InputTokens)+int64(s.Count)*int64(s.Tokens), MaxTokens))
	return r
}
