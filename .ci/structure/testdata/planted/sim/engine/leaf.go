package engine

type leaf struct{ visit func(*Engine) }

func (l leaf) take(p *part) {}

func (l leaf) takeOwner(e Engine) int { return limit }
