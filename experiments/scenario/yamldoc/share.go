package yamldoc

import (
	"fmt"
	"strconv"
	"strings"

	"clifftop/internal/pattern"
)

// Share is a part of a whole, more than 0 and less than 1, which may be given in percent: 0.02 or 2%.
type Share float64

// WantShare says in errors what a share looks like.
const WantShare = "more than 0 and less than 1, or such as 2%"

// SharePattern is the syntax of a share in percent.
const SharePattern = `^[0-9]+(\.[0-9]+)? ?%$`

var shareSyntax = pattern.New(SharePattern)

// ParseShare reads a share, such as 0.02 or 2%.
func ParseShare(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if shareSyntax.Get().MatchString(text) {
		v, err = strconv.ParseFloat(strings.TrimRight(text, " %"), 64)
		v /= 100
	}
	if err != nil || !(v > 0 && v < 1) {
		return 0, fmt.Errorf("%q is not allowed (want %s)", Short(text), WantShare)
	}
	return v, nil
}

func (s *Share) Decode(d *Decoder, n *Node, key string) {
	v := n.Number
	switch {
	case n.Kind == Text && shareSyntax.Get().MatchString(n.Text):
		v, _ = strconv.ParseFloat(strings.TrimRight(n.Text, " %"), 64)
		v /= 100
	case n.Kind != Number:
		d.Wrong(n, key, WantShare)
		return
	}
	if !(v > 0 && v < 1) {
		d.Refuse(n, key, WantShare)
		return
	}
	*s = Share(v)
}
