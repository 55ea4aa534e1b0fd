package sched

// room is what TensorRT-LLM's capacity policy leaves for waiting requests.
type room struct {
	policy  Capacity
	v       View
	closed  bool // no request is started in this iteration
	looking int  // blocks of requests that were looked at and are not started yet
	seats   int  // and their number
	waiting Waiting

	contextsWait bool // contexts that run get nothing
}

// newRoom returns the room of an iteration in which nothing was given yet. In a static batch contexts wait while a
// sequence generates, also those of which a part is computed.
func newRoom(policy Capacity, v View) *room {
	r := &room{policy: policy, v: v}
	if policy == StaticBatch {
		contexts := 0
		for s := v.NextPrefill(None); s != None; s = v.NextPrefill(s) {
			contexts++
		}
		r.contextsWait = v.RunningLen() > contexts
		r.closed = r.contextsWait
	}
	return r
}

// next returns the i-th request of the queue if it can be started in addition to those before it; otherwise the cause,
// or neither if there is none.
func (r *room) next(i int) (*Waiting, Cause) {
	v := r.v
	w, ok := v.Waiting(i)
	r.waiting = w
	switch {
	case !ok:
		return nil, NotBlocked
	case r.closed:
		return &r.waiting, HeldByPolicy
	case v.Seats() <= r.seats:
		return &r.waiting, LacksSeats
	case v.RunningLen()+r.seats > 0 && r.need(w) > r.left():
		return &r.waiting, LacksKV
	}
	return &r.waiting, NotBlocked
}

// need returns the number of blocks that the policy requires to start w.
func (r *room) need(w Waiting) int {
	tokens := w.Prompt + w.MaxTokens
	if r.policy == MaxUtilization {
		tokens = w.Known
	}
	return r.v.BlocksFor(tokens) - w.Held
}

// left returns the number of blocks that are neither taken nor reserved.
func (r *room) left() int { return r.v.FreeBlocks() - r.v.Booked() - r.looking }

// look counts w, which can be started, against those looked at later.
func (r *room) look(w Waiting) {
	r.looking += r.need(w)
	r.seats++
}

// start admits the i-th request of the queue, w, with n tokens.
func (r *room) start(i int, n int32, w Waiting) {
	v := r.v
	s := v.Admit(i, n)
	if w.Cached+n < w.Known {
		v.Reserve(s, w.Known)
	}
	if r.policy != MaxUtilization {
		v.Book(s, w.Prompt+w.MaxTokens)
	}
}
