package router

import (
	"clifftop/experiments/internal/optional"
	"clifftop/sim/route"
)

var powerOfTwoRule = Rule{
	Name:    "power-of-two",
	Does:    "the less loaded of two drawn at random",
	Source:  "Mitzenmacher 2001; Ray Serve",
	Options: func() Options { return new(powerOfTwo) },
}

type powerOfTwo struct {
	// Compares own outstanding requests, or scraped metrics.
	Load *string `json:"load,omitempty" one:"outstanding scraped"`
}

func (o *powerOfTwo) Router(id route.Identity) route.Router {
	return &route.PowerOfTwo{ID: id, Scraped: o.Scrapes()}
}

func (o *powerOfTwo) Scrapes() bool { return optional.Value(o.Load) == "scraped" }
