package workload

import "fmt"

// PrefixSpec makes prompts repeat and share prefixes, as in requests to a few applications with long system prompts.
// Request i uses prompt j = i mod (Groups·PromptsPerGroup), which belongs to group j div PromptsPerGroup. A prompt has
// one length for the whole run; its group shares the first SharedTokens tokens. The zero value makes all prompts
// unique.
//
// By user is for closed loops: each user has its own text, a document or a conversation, whose first SharedTokens
// tokens begin each of its prompts. The rest of each prompt is unique, and its length is drawn independently.
type PrefixSpec struct {
	By              string `yaml:"by,omitempty" json:"by,omitempty"` // group (also when empty) or user
	Groups          int32  `yaml:"groups" json:"groups"`
	PromptsPerGroup int32  `yaml:"prompts_per_group" json:"prompts_per_group"`
	SharedTokens    int32  `yaml:"shared_tokens" json:"shared_tokens"`
}

// ShortPrompts is a class whose prompts are often shorter than their shared prefix, so that they are nothing else.
type ShortPrompts struct {
	Key          string // of the shared tokens
	SharedTokens int32
	Share        float64 // of prompts that are shorter
}

// ShortPrompts returns the classes with a shared prefix that is longer than at least 1 % of the prompts.
func (s Spec) ShortPrompts() (list []ShortPrompts) {
	check := func(key string, c ClassSpec) {
		law, err := c.Input.Lengths(key)
		if err != nil || c.Prefix.SharedTokens < 2 {
			return
		}
		if short := 1 - law.Exceeds(c.Prefix.SharedTokens-1); short >= 0.01 {
			list = append(list, ShortPrompts{key + ".prefix.shared_tokens", c.Prefix.SharedTokens, short})
		}
	}
	if len(s.Classes) == 0 {
		check("workload", s.all())
	}
	for i, c := range s.Classes {
		check(fmt.Sprintf("workload.classes.%d", i), c)
	}
	return list
}

// maxPrompts limits the table of prompts; each takes about 100 bytes.
const maxPrompts = 1 << 22

func (p PrefixSpec) check(key string, closed bool, f *fieldFaults) {
	if p == (PrefixSpec{}) {
		return
	}
	if p.SharedTokens < 0 || p.SharedTokens > MaxTokens {
		f.add(key+".shared_tokens", "%d is not allowed (want 0 to %d)", p.SharedTokens, MaxTokens)
	}
	switch p.By {
	case "", "group":
		p.checkGroups(key, f)
	case "user":
		if p.Groups != 0 || p.PromptsPerGroup != 0 {
			f.add(key, "groups and prompts_per_group do not apply to by: user (want shared_tokens)")
		}
		if !closed {
			f.add(key+".by", "user needs a closed loop (want arrivals with users, or by: group)")
		}
	default:
		f.add(key+".by", "%q is not known (want group or user)", p.By)
	}
}

func (p PrefixSpec) checkGroups(key string, f *fieldFaults) {
	if p.Groups < 1 {
		f.add(key+".groups", "%d is not allowed (want 1 or more)", p.Groups)
	}
	if p.PromptsPerGroup < 1 {
		f.add(key+".prompts_per_group", "%d is not allowed (want 1 or more)", p.PromptsPerGroup)
	}
	if int64(p.Groups)*int64(p.PromptsPerGroup) > maxPrompts {
		f.add(key, "%d groups of %d prompts are too many (want at most %d prompts in total)", p.Groups,
			p.PromptsPerGroup, maxPrompts)
	}
}

type prompt struct {
	tokens  int32
	content Content
}

// Domains of the identities of groups, of their prompts and of users' texts.
const (
	groupDomain  = 0x67726f7570
	memberDomain = 0x6d656d626572
	userDomain   = 0x75736572
)

// texts returns the prefixes of the users' prompts. A shorter prompt uses the part that fits.
func (p PrefixSpec) texts(users int32) []Content {
	if p.SharedTokens == 0 {
		return nil
	}
	segments := make([]Segment, users)
	contents := make([]Content, users)
	for u := range users {
		segments[u] = Segment{ID: mix(mix(userDomain) + uint64(u)), Tokens: p.SharedTokens}
		contents[u].Segments = segments[u : u+1 : u+1]
	}
	return contents
}

// prompts draws the lengths of all prompts: prompt j has that of draw j. domain separates their texts from others.
func (p PrefixSpec) prompts(input Lengths, stream *RNG, domain uint64) []prompt {
	n := p.Groups * p.PromptsPerGroup
	table := make([]prompt, n)
	segments := make([]Segment, 0, 2*n)
	for j := range n {
		stream.Seek(0, uint64(j))
		length := input.Sample(stream)
		first := len(segments)
		shared := min(p.SharedTokens, length)
		if shared > 0 {
			group := uint64(j / p.PromptsPerGroup)
			segments = append(segments, Segment{ID: mix(mix(groupDomain^domain) + group), Tokens: shared})
		}
		if length > shared {
			segments = append(segments, Segment{ID: mix(mix(memberDomain^domain) + uint64(j)), Tokens: length - shared})
		}
		table[j] = prompt{tokens: length, content: Content{Segments: segments[first:len(segments):len(segments)]}}
	}
	return table
}
