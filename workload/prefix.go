package workload

// PrefixSpec makes prompts repeat and share their beginnings, as requests to a few applications
// with long system prompts do. Request i asks prompt j = i mod (Groups·PromptsPerGroup), which
// belongs to group j div PromptsPerGroup. A prompt has one length for the whole run; its first
// SharedTokens tokens are those of its group. The zero value makes every prompt unique.
type PrefixSpec struct {
	Groups          int32 `yaml:"groups" json:"groups"`
	PromptsPerGroup int32 `yaml:"prompts_per_group" json:"prompts_per_group"`
	SharedTokens    int32 `yaml:"shared_tokens" json:"shared_tokens"`
}

// maxPrompts bounds the table of prompts; each takes about 100 bytes.
const maxPrompts = 1 << 22

func (p PrefixSpec) check(key string, f *faults) {
	if p == (PrefixSpec{}) {
		return
	}
	if p.Groups < 1 {
		f.add(key+".groups", "%d is not allowed (want 1 or more)", p.Groups)
	}
	if p.PromptsPerGroup < 1 {
		f.add(key+".prompts_per_group", "%d is not allowed (want 1 or more)", p.PromptsPerGroup)
	}
	if p.SharedTokens < 0 || p.SharedTokens > MaxTokens {
		f.add(key+".shared_tokens", "%d is not allowed (want 0 to %d)", p.SharedTokens, MaxTokens)
	}
	if int64(p.Groups)*int64(p.PromptsPerGroup) > maxPrompts {
		f.add(key, "%d groups of %d prompts are too many (want at most %d prompts)", p.Groups, p.PromptsPerGroup, maxPrompts)
	}
}

// prompt is one of the prompts that repeat.
type prompt struct {
	tokens  int32
	content Content
}

// Domains of the identities of groups and their prompts.
const (
	groupDomain  = 0x67726f7570
	memberDomain = 0x6d656d626572
)

// prompts draws the lengths of all prompts: prompt j has that of draw j.
func (p PrefixSpec) prompts(input Lengths, stream *Stream) []prompt {
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
			segments = append(segments, Segment{ID: mix(mix(groupDomain) + group), Tokens: shared})
		}
		if length > shared {
			segments = append(segments, Segment{ID: mix(mix(memberDomain) + uint64(j)), Tokens: length - shared})
		}
		table[j] = prompt{tokens: length, content: Content{Segments: segments[first:len(segments):len(segments)]}}
	}
	return table
}
