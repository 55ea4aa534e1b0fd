package estimate

import (
	"errors"
	"fmt"
	"math"
)

// Price is what GPUs cost and give.
type Price struct {
	USDPerGPUHour float64
	GPUs          float64
	// TokensPerSecond is what all GPUs deliver together when there is enough to do.
	TokensPerSecond float64
	// Utilisation is the part of that which is asked for; 0 is unknown.
	Utilisation float64
}

// Cost is the price of tokens at capacity, and at the utilisation that there is: idle hours are paid for.
func Cost(p Price) (*Result, error) {
	const most = 1e12
	switch {
	case !(p.USDPerGPUHour >= 0 && p.USDPerGPUHour <= most):
		return nil, fmt.Errorf("$%v per hour are not allowed (want 0 or more)", p.USDPerGPUHour)
	case !(p.GPUs >= 1 && p.GPUs <= most) || p.GPUs != math.Trunc(p.GPUs):
		return nil, fmt.Errorf("%v GPUs are not allowed (want 1 or more)", p.GPUs)
	case !(p.TokensPerSecond > 0 && p.TokensPerSecond <= most):
		return nil, errors.New("the throughput must be above 0 tok/s")
	case !(p.Utilisation >= 0 && p.Utilisation <= 1):
		return nil, fmt.Errorf("a utilisation of %v is not allowed (want 0 to 1)", p.Utilisation)
	}
	r := newResult("cost", fmt.Sprintf("%s GPUs at $%s per hour that deliver %s tokens/s", amount(p.GPUs), amount(p.USDPerGPUHour), amount(p.TokensPerSecond)))
	if p.GPUs == 1 {
		r.Of = fmt.Sprintf("a GPU at $%s per hour that delivers %s tokens/s", amount(p.USDPerGPUHour), amount(p.TokensPerSecond))
	}
	hourly, perHour := p.USDPerGPUHour*p.GPUs, p.TokensPerSecond*3600
	r.add("usd_per_hour", "price of all GPUs", hourly, "$/h", "GPUs × price of one", fmt.Sprintf("%s × %s", amount(p.GPUs), amount(p.USDPerGPUHour)))
	r.add("tokens_per_hour", "tokens per hour", perHour, "tokens", "tokens per second × 3600", fmt.Sprintf("%s × 3600", amount(p.TokensPerSecond)))
	million := hourly / perHour * 1e6
	r.add("usd_per_million_tokens_at_capacity", "per million tokens, at capacity", million, "$", "price per hour / tokens per hour × 1,000,000",
		fmt.Sprintf("%s / %s × 1,000,000", amount(hourly), amount(perHour)))
	r.add("usd_per_thousand_tokens_at_capacity", "per thousand tokens, at capacity", million/1000, "$", "price per hour / tokens per hour × 1,000",
		fmt.Sprintf("%s / %s × 1,000", amount(hourly), amount(perHour)))
	if p.Utilisation > 0 {
		r.add("usd_per_million_tokens_at_load", "per million tokens, at this utilisation", million/p.Utilisation, "$", "price at capacity / utilisation",
			fmt.Sprintf("%s / %s", amount(million), percent(p.Utilisation)))
		r.add("idle_usd_per_hour", "paid for idle time", hourly*(1-p.Utilisation), "$/h", "price of all GPUs × (1 - utilisation)",
			fmt.Sprintf("%s × (1 - %s)", amount(hourly), percent(p.Utilisation)))
	}
	r.note("A common example says that $10/h at 10,000 tokens/s cost $0.001 per thousand tokens. It is 3.6 times that which is right, $0.000278: an hour has 3,600 seconds. Its ratio between 10,000 and 1,000 tokens/s, ten, is right.")
	r.note("Count tokens that were delivered: those of failed and repeated requests are paid for too. More throughput makes tokens cheaper only where demand fills it.")
	return r, nil
}
