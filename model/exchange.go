package model

import (
	"fmt"
	"math"
	"math/bits"
)

// Exchange is the way in which data-parallel ranks send tokens to the ranks of their experts and get results back.
type Exchange uint8

// The ways, with vLLM's names where it has one.
const (
	// ExchangeGather gathers the tokens of all ranks on each rank, and reduces and scatters the results, by NCCL
	// (allgather_reducescatter).
	ExchangeGather Exchange = iota
	// ExchangeLowLatency is DeepEP's exchange of few tokens: a copy to each expert (deepep_low_latency).
	ExchangeLowLatency
	// ExchangeThroughput is DeepEP's exchange of many tokens: a copy to each rank (deepep_high_throughput).
	ExchangeThroughput
	// ExchangeDeepEP is the faster of both, as engines choose between decode and prefill (SGLang's deepep, mode auto).
	ExchangeDeepEP
	// ExchangeNVLink is TensorRT-LLM's all-to-all over NVLink: a copy to each rank (flashinfer_all2allv).
	ExchangeNVLink
	exchanges
)

// exchangeNames are the names of the ways in scenarios.
var exchangeNames = [exchanges]string{"allgather_reducescatter", "deepep_low_latency", "deepep_high_throughput",
	"deepep", "flashinfer_all2allv"}

// ParseExchange returns the way with a name.
func ParseExchange(name string) (Exchange, error) {
	for i, n := range exchangeNames {
		if n == name {
			return Exchange(i), nil
		}
	}
	return 0, fmt.Errorf("unknown all2all_backend %q", name)
}

func (e Exchange) String() string { return exchangeNames[min(e, exchanges-1)] }

// ExchangeConstants describe the kernels of an exchange, dispatch and combine together:
//
//	t = Latency + bytes sent or received / bandwidth
//
// Beyond a scale-up domain the first doubling of domains adds FirstHop, each other one NextHop, and the bytes to other
// domains go over the network. A zero Latency means that there are no measurements.
type ExchangeConstants struct {
	Latency, FirstHop, NextHop float64 // seconds
	Dispatch, Combine          float64 // bytes per second over the scale-up links
	Network                    float64 // fraction of the network's bandwidth
}

// perExpert reports whether the way sends a copy of a token to each of its experts, and not to each of their ranks.
func (e Exchange) perExpert() bool { return e == ExchangeLowLatency }

// checkExchange returns an error if the GPU has no measurements of the exchange.
func (d *Deployment) checkExchange() error {
	switch {
	case d.Exchange >= exchanges:
		return fmt.Errorf("unknown all2all_backend %d", d.Exchange)
	case d.Exchange == ExchangeGather:
		return nil
	case d.ExpertParallel == 1:
		return fmt.Errorf("all2all_backend %v sends tokens to the ranks of experts (want expert_parallel_size above "+
			"1, or %v)", d.Exchange, ExchangeGather)
	}
	for _, way := range d.Exchange.kernels() {
		if d.GPU.Kernels.Exchange[way].Latency == 0 {
			return fmt.Errorf("all2all_backend %v is not measured on %s (want %v)", d.Exchange, d.GPU.Name,
				ExchangeGather)
		}
	}
	return nil
}

// kernels returns the ways that have constants of their own.
func (e Exchange) kernels() []Exchange {
	if e == ExchangeDeepEP {
		return []Exchange{ExchangeLowLatency, ExchangeThroughput}
	}
	return []Exchange{e}
}

// exchanger computes the exchange between data-parallel ranks and experts.
type exchanger struct{ *ops }

// exchange returns the cost of the exchange of one layer, in which a rank sends or receives the given number of
// tokens, of all tokens of the ranks.
func (o exchanger) exchange(tokens float64) cost {
	way := o.d.Exchange
	if way == ExchangeGather {
		return o.gather(tokens * float64(o.d.DataParallel))
	}
	best := cost{}
	for i, k := range way.kernels() {
		if c := o.allToAll(k, tokens); i == 0 || c.seconds < best.seconds {
			best = c
		}
	}
	return best
}

// gather returns the cost of all-gathers of the hidden states and of the router's scores, and of a reduce-scatter of
// the results, over the GPUs that share the experts.
func (o exchanger) gather(all float64) cost {
	l, n := &o.comm, o.d.moeRanks()
	call := l.c.NCCLLatency[l.line(n)] + l.latency(n) - l.c.Latency[l.line(n)]
	c := cost{latency: float64(3 * call), memory: l.transfer(2*all*o.h, n)}
	c.seconds = c.latency + c.memory
	return c
}

// allToAll returns the cost of an exchange of tokens with a copy of each for every expert or rank that it visits.
func (o exchanger) allToAll(way Exchange, tokens float64) cost {
	c := &o.c.Exchange[way]
	ranks, domain := o.d.moeRanks(), o.comm.domain
	domains := (ranks + domain - 1) / domain
	copies, far := o.copies(way, ranks), 0.0
	t := cost{latency: c.Latency}
	if domains > 1 {
		far = o.copies(way, domains)
		t.latency += c.FirstHop + float64(c.NextHop*float64(bits.Len(uint(domains-1))-1))
	}
	dispatch, combine := o.h*dispatchBytes(o.d.MoEDtype, way), 2*o.h
	send := func(bytes, bandwidth float64) float64 {
		near := tokens * copies * bytes / bandwidth
		if far == 0 {
			return near
		}
		return max(near, tokens*far*bytes/(c.Network*o.d.GPU.NICBytesPerSecond))
	}
	t.memory = send(dispatch, c.Dispatch) + send(combine, c.Combine)
	t.seconds = t.latency + t.memory
	return t
}

// copies returns the expected number of copies of a token that leave for other places, of n in which its experts are:
// one for each expert, or for each place.
func (o exchanger) copies(way Exchange, n int) float64 {
	k, places := float64(o.d.LLM.TopK), float64(n)
	if !way.perExpert() {
		k = places * (1 - math.Pow(1-1/places, k))
	}
	return k * (places - 1) / places
}

// dispatchBytes returns the bytes of one number of a token that is sent to experts in format p, with its share of
// scales. DeepEP sends 8 bits at least.
func dispatchBytes(p Precision, way Exchange) float64 {
	switch {
	case p == NVFP4 && way == ExchangeNVLink:
		return 0.5 + 1.0/16
	case p == FP8, p == NVFP4:
		return 1 + 4.0/128
	}
	return 2
}
