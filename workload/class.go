package workload

import "fmt"

// ClassSpec is one class of traffic in the mix of a [Spec].
type ClassSpec struct {
	// Name is the unique name of the class.
	Name string `yaml:"name" json:"name"`
	// Weight is the relative share of the class: of requests or sessions in an open loop, see [Spec.ClassWeights],
	// and of users in a closed loop.
	Weight float64 `yaml:"weight" json:"weight"`
	// Priority applies to all requests of the class; the lower value goes first under a priority policy.
	Priority int16 `yaml:"priority,omitempty" json:"priority,omitempty"`
	// Input, Output, Prefix and Sessions are as in [Spec].
	Input    LengthsSpec  `yaml:"input,omitempty" json:"input,omitzero"`
	Output   LengthsSpec  `yaml:"output" json:"output"`
	Prefix   PrefixSpec   `yaml:"prefix,omitempty" json:"prefix,omitzero"`
	Sessions *SessionSpec `yaml:"sessions,omitempty" json:"sessions,omitempty"`
	// Adapters says which LoRA adapters the requests use.
	Adapters AdapterSpec `yaml:"adapters,omitempty" json:"adapters,omitzero"`
	// Needs lists the keys above that the class's preset does not fill, and why.
	Needs []Need `yaml:"-" json:"-"`
}

// What the weights of classes are shares of, in an open loop.
const (
	OfRequests = "requests"
	OfStarts   = "sessions"
)

// MaxClasses is the maximum number of classes of a Spec.
const MaxClasses = 1000

// part is a compiled class, or the whole traffic of a Spec without classes.
type part struct {
	bodies        // without random number generators
	prefix        PrefixSpec
	adapters      AdapterSpec
	conversations *conversationLaws // nil for single requests
	survey        conversationStats
	weight        float64
	share         float64 // of the arrivals of an open loop
}

// turns returns the mean number of requests per arrival.
func (p *part) turns() float64 {
	if p.conversations == nil {
		return 1
	}
	return p.survey.turns
}

// all returns the single class of a Spec without classes.
func (s Spec) all() ClassSpec {
	return ClassSpec{Weight: 1, Input: s.Input, Output: s.Output, Prefix: s.Prefix, Sessions: s.Sessions,
		Adapters: s.Adapters, Needs: s.Needs}
}

// needsMix reports whether the traffic has several classes or conversations.
func (s Spec) needsMix() bool { return len(s.Classes) > 0 || s.Sessions != nil }

func (s Spec) compileParts(f *fieldFaults) []part {
	s.Images.check(f)
	if len(s.Classes) == 0 {
		return []part{s.compilePart("workload", s.all(), f)}
	}
	switch s.ClassWeights {
	case "", OfRequests, OfStarts:
	default:
		f.add("workload.class_weights", "%q is not known (want requests or sessions)", s.ClassWeights)
	}
	if len(s.Classes) > MaxClasses {
		f.add("workload.classes", "%d classes are too many (want at most %d)", len(s.Classes), MaxClasses)
		return nil
	}
	var parts []part
	names := map[string]bool{}
	sum := 0.0
	for i, c := range s.Classes {
		key := fmt.Sprintf("workload.classes.%d", i)
		switch {
		case c.Name == "":
			f.add(key+".name", "is missing")
		case names[c.Name]:
			f.add(key+".name", "%q is already the name of another class (want a unique name)", c.Name)
		}
		names[c.Name] = true
		f.number(key+".weight", c.Weight, c.Weight >= 0 && c.Weight <= 1e12, "0 or more")
		sum += c.Weight
		parts = append(parts, s.compilePart(key, c, f))
	}
	if !(sum > 0) {
		f.add("workload.classes", "all weights are 0 (want more than 0 for at least one)")
	}
	return parts
}

// compilePart compiles the length distributions of a class and the laws of its conversations.
func (s Spec) compilePart(key string, c ClassSpec, f *fieldFaults) part {
	p := part{prefix: c.Prefix, adapters: c.Adapters, weight: c.Weight}
	c.Adapters.check(key+".lora", f)
	before := f.Len()
	if c.Sessions == nil && !needs(c.Needs, key, "input", c.Input.Distribution == "", f) {
		p.input = c.Input.build(key+".input", f)
	}
	switch {
	case needs(c.Needs, key, "output", c.Output.Distribution == "", f):
	case c.Output.Distribution == "given-input":
		p.given = c.Output.givenInput(key+".output", f)
	default:
		p.output = c.Output.build(key+".output", f)
	}
	if p.cutOutputs(s.MaxTokens); s.MaxTokens < 0 {
		f.add("workload.max_tokens", "%d is not allowed (want 1 or more)", s.MaxTokens)
	}
	c.Prefix.check(key+".prefix", s.Closed(), f)
	if c.Sessions == nil {
		return p
	}
	p.conversations = c.Sessions.build(key+".sessions", s.Closed(), s.MaxModelLen, f)
	if c.Prefix != (PrefixSpec{}) {
		f.add(key+".prefix", "cannot be combined with sessions (want sessions.system_prompt)")
	}
	if len(s.Arrivals) == 1 && s.Arrivals[0].Process == "all-at-once" {
		f.add(key+".sessions", "cannot be combined with process all-at-once (want a rate, or a closed loop of users)")
	}
	if f.Len() == before {
		k := newClass(p.bodies, p.conversations, 0)
		p.survey = k.simulate()
	}
	return p
}

// needs reports whether a key is unset because the preset cannot fill it, and adds the fault.
func needs(list []Need, prefix, key string, open bool, f *fieldFaults) bool {
	for _, n := range list {
		if open && n.Key == key {
			f.add(prefix+"."+key, "%s", n.Reason)
			return true
		}
	}
	return false
}

// shareOut sets the classes' shares of the arrivals of an open loop and returns the mean number of requests per
// arrival.
func (s Spec) shareOut(parts []part) (perStart float64) {
	starts, requests := 0.0, 0.0
	for i := range parts {
		p := &parts[i]
		p.share = p.weight
		if s.ClassWeights != OfStarts {
			p.share /= p.turns()
		}
		starts += p.share
		requests += p.share * p.turns()
	}
	for i := range parts {
		parts[i].share /= starts
	}
	return requests / starts
}

// classes returns the classes with random number generators that do not depend on the other classes.
func (s Spec) classes(parts []part, seed uint64) []class {
	var list []class
	for i := range parts {
		p := &parts[i]
		own := seed
		var domain uint64
		if len(s.Classes) > 0 {
			domain = SegmentID(s.Classes[i].Name)
			own = Hash(seed, domain)
		}
		k := newClass(p.bodies, p.conversations, own)
		k.adapters = p.adapters.law(own)
		k.domain = domain
		if len(s.Classes) > 0 {
			k.class, k.priority = uint16(i), s.Classes[i].Priority
		}
		switch {
		case p.prefix.By == "user":
			k.texts = p.prefix.texts(s.Arrivals[0].Users)
		case p.prefix != (PrefixSpec{}):
			k.prompts = p.prefix.prompts(k.input, k.inputs, domain)
		}
		list = append(list, k)
	}
	return list
}

// spread assigns classes to n users by weight, evenly spaced (smooth weighted round-robin).
func spread(parts []part, n int32) []int32 {
	sum := 0.0
	for i := range parts {
		sum += parts[i].weight
	}
	of := make([]int32, n)
	due := make([]float64, len(parts)) // users that each class still lacks
	for u := range of {
		most := 0
		for i := range parts {
			due[i] += parts[i].weight / sum
			if due[i] > due[most] {
				most = i
			}
		}
		due[most]--
		of[u] = int32(most)
	}
	return of
}
