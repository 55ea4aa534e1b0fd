package faults

import (
	"errors"
	"io"
	"math"
	"testing"
)

func TestListCollectsAll(t *testing.T) {
	l := List{Prefix: "kv: "}
	l.Check(true, "never")
	l.Check(false, "block %d", 7)
	l.Add(nil, errors.Join(io.EOF, errors.New("other")))
	l.Positive("rate", math.Inf(1))
	l.AtLeast("price", -1, 0)
	Within(&l, "ratio", math.NaN(), 0, 1)
	Within(&l, "count", 3, 1, 3)
	const want = "kv: block 7\nEOF\nother\nkv: rate is +Inf (want a positive number)\nkv: price is -1 (want 0 or more)\n" +
		"kv: ratio is NaN (want 0 to 1)"
	if err := l.Err(); err == nil || err.Error() != want || !errors.Is(err, io.EOF) || l.Len() != 6 {
		t.Errorf("%d errors: %v", l.Len(), err)
	}
}

func TestEmptyListIsNoError(t *testing.T) {
	var l List
	l.Add(nil, errors.Join(nil))
	if err := l.Err(); err != nil || l.Len() != 0 {
		t.Errorf("got %v", err)
	}
}
