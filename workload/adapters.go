package workload

import "math"

// AdapterSpec says which LoRA adapters requests use. The turns of a conversation use the same one. The zero value is
// the base model.
type AdapterSpec struct {
	// First is the number of the first adapter, Count how many there are.
	First int32 `yaml:"first" json:"first"`
	Count int32 `yaml:"count" json:"count"`
	// Zipf gives the k-th adapter the weight k to the power of -Zipf; 0 makes all equally frequent.
	Zipf float64 `yaml:"zipf,omitempty" json:"zipf,omitempty"`
	// Share is the fraction of requests, or conversations, that use an adapter; the others use the base model.
	Share float64 `yaml:"share" json:"share"`
}

// MaxAdapters is the maximum number of adapters of an AdapterSpec.
const MaxAdapters = 1 << 20

func (a AdapterSpec) check(key string, f *fieldFaults) {
	if a == (AdapterSpec{}) {
		return
	}
	if a.First < 1 {
		f.add(key+".first", "%d is not allowed (want 1 or more)", a.First)
	}
	if a.Count < 1 || a.Count > MaxAdapters {
		f.add(key+".adapters", "%d is not allowed (want 1 to %d)", a.Count, MaxAdapters)
	}
	f.number(key+".zipf", a.Zipf, a.Zipf >= 0 && a.Zipf <= 100, "0 to 100")
	f.number(key+".share", a.Share, a.Share > 0 && a.Share <= 1, "more than 0, at most 1")
}

// adapterLaw draws adapters.
type adapterLaw struct {
	AdapterSpec
	upTo  []float64 // cumulative shares of the adapters
	draws *RNG
}

// law returns the law of the adapters, or nil for none.
func (a AdapterSpec) law(seed uint64) *adapterLaw {
	if a.Count < 1 {
		return nil
	}
	l := &adapterLaw{AdapterSpec: a, upTo: make([]float64, a.Count), draws: NewRNG(seed, purposeAdapter)}
	sum := 0.0
	for k := range l.upTo {
		sum += math.Pow(float64(k+1), -a.Zipf)
		l.upTo[k] = sum
	}
	for k := range l.upTo {
		l.upTo[k] /= sum
	}
	return l
}

// of returns the adapter of request k of an entity; 0 is the base model.
func (l *adapterLaw) of(entity, k uint64) int32 {
	if l == nil {
		return 0
	}
	l.draws.Seek(entity, k)
	if uniform(l.draws) >= l.Share {
		return 0
	}
	return l.First + int32(pick(l.upTo, uniform(l.draws)))
}
