package estimate

import (
	"errors"
	"fmt"
	"math"
)

// Price is the price and the throughput of GPUs.
type Price struct {
	USDPerGPUHour float64
	GPUs          float64
	// TokensPerSecond is the throughput of all GPUs together at full load.
	TokensPerSecond float64
	// Utilisation is the fraction of the throughput that is used, or 0 if it is unknown.
	Utilisation float64
}

// Cost estimates the price of tokens at full load and at the actual utilisation: idle hours cost money too.
func Cost(p Price) (*Result, error) {
	const most = 1e12
	switch {
	case !(p.USDPerGPUHour >= 0 && p.USDPerGPUHour <= most):
		return nil, fmt.Errorf("a price of $%v per hour is not allowed (want 0 or more)", p.USDPerGPUHour)
	case !(p.GPUs >= 1 && p.GPUs <= most) || p.GPUs != math.Trunc(p.GPUs):
		return nil, fmt.Errorf("%v GPUs are not allowed (want 1 or more)", p.GPUs)
	case !(p.TokensPerSecond > 0 && p.TokensPerSecond <= most):
		return nil, errors.New("a throughput of 0 tok/s is not allowed (want above 0)")
	case !(p.Utilisation >= 0 && p.Utilisation <= 1):
		return nil, fmt.Errorf("a utilisation of %v is not allowed (want 0 to 1)", p.Utilisation)
	}
	gpus := "one GPU"
	if p.GPUs > 1 {
		gpus = amount(p.GPUs) + " GPUs"
	}
	r := newResult("cost", fmt.Sprintf("%s at $%s per GPU and hour with a throughput of %s tokens/s",
		gpus, amount(p.USDPerGPUHour), amount(p.TokensPerSecond)))
	hourly, perHour := p.USDPerGPUHour*p.GPUs, p.TokensPerSecond*3600
	r.add("usd_per_hour", "price of all GPUs", hourly, "$/h", "GPUs × price per GPU",
		fmt.Sprintf("%s × %s", amount(p.GPUs), amount(p.USDPerGPUHour)))
	r.add("tokens_per_hour", "tokens per hour", perHour, "tokens", "tokens per second × 3600",
		fmt.Sprintf("%s × 3600", amount(p.TokensPerSecond)))
	million := hourly / perHour * 1e6
	r.add("usd_per_million_tokens_at_capacity", "per million tokens, at capacity", million, "$",
		"price per hour / tokens per hour × 1,000,000",
		fmt.Sprintf("%s / %s × 1,000,000", amount(hourly), amount(perHour)))
	r.add("usd_per_thousand_tokens_at_capacity", "per thousand tokens, at capacity", million/1000, "$",
		"price per hour / tokens per hour × 1,000",
		fmt.Sprintf("%s / %s × 1,000", amount(hourly), amount(perHour)))
	if p.Utilisation > 0 {
		r.add("usd_per_million_tokens_at_load", "per million tokens, at this utilisation", million/p.Utilisation, "$",
			"price at capacity / utilisation", fmt.Sprintf("%s / %s", amount(million), percent(p.Utilisation)))
		r.add("idle_usd_per_hour", "price of idle time", hourly*(1-p.Utilisation), "$/h",
			"price of all GPUs × (1 - utilisation)",
			fmt.Sprintf("%s × (1 - %s)", amount(hourly), percent(p.Utilisation)))
	}
	r.note("A common example says that $10/h at 10,000 tokens/s is $0.001 per thousand tokens. The correct value is " +
		"$0.000278: an hour has 3,600 seconds, and the example is 3.6 times too high. Its ratio between 10,000 and " +
		"1,000 tokens/s, ten, is correct.")
	r.note("Count delivered tokens: the tokens of failed and repeated requests cost money too. Higher throughput " +
		"makes tokens cheaper only if demand uses it.")
	return r, nil
}
