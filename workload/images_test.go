package workload

import "testing"

// TestImagesIn counts images by the token at which each begins: two of 10 tokens at 5 and 15.
func TestImagesIn(t *testing.T) {
	x := Images{Count: 2, Tokens: 10, At: 5}
	for _, c := range []struct{ from, n, want int32 }{
		{0, 5, 0}, {0, 6, 1}, {5, 1, 1}, {6, 9, 0}, {6, 10, 1}, {0, 100, 2}, {15, 1, 1}, {16, 100, 0}, {0, 0, 0},
	} {
		if got := x.In(c.from, c.n); got != c.want {
			t.Errorf("%d tokens from %d: %d images, want %d", c.n, c.from, got, c.want)
		}
	}
	if (Images{}).In(0, 100) != 0 {
		t.Error("no images are counted")
	}
}

// TestImageSource compares traffic with and without images: the share of requests is as given, and the other lengths
// stay the same.
func TestImageSource(t *testing.T) {
	spec := Spec{
		Arrivals: []Phase{{Process: "poisson", Rate: 10}}, Requests: 4000,
		Input: LengthsSpec{Distribution: "gamma", Mean: 300, CV: 1}, Output: LengthsSpec{Distribution: "fixed", Value: 20},
		Prefix: PrefixSpec{Groups: 3, SharedTokens: 100, PromptsPerGroup: 1000},
	}
	plain, err := New(spec, 7)
	if err != nil {
		t.Fatal(err)
	}
	spec.Images = ImageSpec{Share: 0.25, Count: 2, Tokens: 64}
	src, err := New(spec, 7)
	if err != nil {
		t.Fatal(err)
	}
	with := 0
	for {
		if _, ok := src.Peek(); !ok {
			break
		}
		r, without := src.Next(), plain.Next()
		if r.Arrival != without.Arrival || r.OutputTokens != without.OutputTokens ||
			r.InputTokens != without.InputTokens+r.Images.Count*r.Images.Tokens {
			t.Fatalf("%+v, without images %+v", r, without)
		}
		if r.Images.Count == 0 {
			continue
		}
		with++
		if shared := min(r.Content.Tokens(), int64(without.InputTokens)); int64(r.Images.At) != shared {
			t.Fatalf("images at %d, want after the %d shared tokens", r.Images.At, shared)
		}
	}
	if with < 930 || with > 1070 { // 1,000 ± 2.6 standard deviations
		t.Errorf("%d of 4,000 requests have images, want 1,000", with)
	}
	spec.Images.Share = 2
	if _, err := New(spec, 7); err == nil {
		t.Error("a share of 2 is accepted")
	}
}
