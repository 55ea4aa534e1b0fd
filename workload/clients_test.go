package workload

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"clifftop/sim/clock"
)

func mustClients(t *testing.T, src Source, kinds ...ClientSpec) Source {
	t.Helper()
	c, err := NewClients(src, 5, kinds...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// attempt is an attempt that a test has ended, and whether its client retries.
type attempt struct {
	Request
	end   End
	again bool
}

// drive takes all attempts of a source, up to n, and ends each before the next comes.
func drive(src Source, n int, end func(*Request) End) []attempt {
	var list []attempt
	for len(list) < n {
		at, ok := src.Peek()
		if !ok {
			break
		}
		a := attempt{Request: src.Next()}
		if a.Arrival != at {
			panic("Peek and Next disagree")
		}
		a.end = end(&a.Request)
		a.again = src.Done(&a.Request, a.end)
		list = append(list, a)
	}
	return list
}

// fails ends every attempt after a time.
func fails(how Ending, after clock.Duration) func(*Request) End {
	return func(r *Request) End { return End{How: how, At: r.Arrival.Add(after), First: clock.Never} }
}

// answers completes every attempt: the first token arrives after one second, the last one second later.
func answers(r *Request) End {
	return End{At: r.Arrival.Add(2 * clock.Second), First: r.Arrival.Add(clock.Second), Tokens: r.OutputTokens}
}

func TestBackoff(t *testing.T) {
	b := Backoff{Base: 500 * clock.Millisecond, Cap: 8 * clock.Second, Factor: 2}
	for _, c := range []struct {
		jitter    string
		low, high float64 // of the wait, as fractions of d
	}{{"none", 1, 1}, {"full", 0, 1}, {"equal", 0.5, 1}, {"openai", 0.75, 1}} {
		b.Jitter = c.jitter
		for k, d := range []float64{0.5, 1, 2, 4, 8, 8} {
			stream := NewRNG(1, "backoff")
			least, most, sum := math.Inf(1), 0.0, 0.0
			const n = 2000
			for i := range n {
				stream.Seek(0, uint64(i))
				w := b.Wait(int32(k), stream).Seconds()
				least, most, sum = min(least, w), max(most, w), sum+w
			}
			if least < c.low*d || most > c.high*d || c.low == 0 && least <= 0 {
				t.Errorf("%s, retry %d: waits of %g to %g s, want %g to %g", c.jitter, k, least, most, c.low*d,
					c.high*d)
			}
			// The mean of a uniform law, and its ends, within what 2,000 draws leave open.
			width := (c.high - c.low) * d
			if mean := (c.low + c.high) / 2 * d; math.Abs(sum/n-mean) > 0.03*width+1e-9 || least > c.low*d+0.01*width ||
				most < c.high*d-0.01*width {
				t.Errorf("%s, retry %d: waits of %g to %g s, mean %g", c.jitter, k, least, most, sum/n)
			}
		}
	}
	if w := (Backoff{}).Wait(3, NewRNG(1, "backoff")); w != 0 {
		t.Errorf("no backoff waits %v", w)
	}
}

// TestAttempts: which properties the attempts of a request share, and which differ.
func TestAttempts(t *testing.T) {
	s := chat()
	s.Requests = 200
	plain := drain(mustNew(t, s, 5), 1000, 0)
	spec := ClientSpec{
		Timeout: 10 * clock.Second, FirstTimeout: clock.Second, Retries: 2, RetryOn: Retryable,
		Backoff: Backoff{Base: clock.Second, Cap: 8 * clock.Second, Factor: 2, Jitter: "none"},
	}
	all := drive(mustClients(t, mustNew(t, s, 5), spec), 1000, fails(TimedOutFirst, clock.Second))
	if len(all) != 600 {
		t.Fatalf("%d attempts of 200 requests, want 600", len(all))
	}
	seen := map[int64][]attempt{}
	for i, a := range all {
		if a.ID != int64(i) || a.Client.FirstTimeout != clock.Second || a.Client.Timeout != 10*clock.Second {
			t.Fatalf("attempt %d: %+v, %+v", i, a.Request, a.Client)
		}
		if i > 0 && a.Arrival < all[i-1].Arrival {
			t.Fatalf("attempt %d at %v after one at %v", i, a.Arrival, all[i-1].Arrival)
		}
		first, _ := a.First()
		seen[first] = append(seen[first], a)
	}
	k := 0
	for _, a := range all {
		if a.Attempt() > 0 {
			continue
		}
		tries, want := seen[a.ID], plain[k]
		k++
		if len(tries) != 3 {
			t.Fatalf("request %d: %d attempts, want 3", a.ID, len(tries))
		}
		for i, b := range tries {
			if _, sent := b.First(); sent != want.Arrival || b.Attempt() != int32(i) || b.again != (i < 2) ||
				b.InputTokens != want.InputTokens || b.OutputTokens != want.OutputTokens ||
				b.Client.Earlier.Has(TimedOutFirst) != (i > 0) {
				t.Fatalf("attempt %d of request %d: %+v, %+v", i, a.ID, b.Request, b.Client)
			}
			if i > 0 {
				if wait := b.Arrival.Sub(tries[i-1].end.At); wait != clock.Second<<(i-1) {
					t.Fatalf("retry %d waited %v", i, wait)
				}
			}
		}
	}
}

// TestSharedText: a retry can hit the cached blocks of the attempt before it, and no other request can.
func TestSharedText(t *testing.T) {
	keys := func(r *Request) (list []uint64, private bool) {
		k := NewBlockKeys(r, 16)
		for range (r.InputTokens + r.OutputTokens) / 16 {
			key, own := k.Next()
			list, private = append(list, key), own
		}
		return list, private
	}
	s := chat()
	s.Requests = 2
	spec := ClientSpec{Timeout: clock.Second, Retries: 1, RetryOn: Retryable,
		Backoff: Backoff{Base: clock.Hour, Cap: clock.Hour, Factor: 1}}
	all := drive(mustClients(t, mustNew(t, s, 5), spec), 10, fails(TimedOut, clock.Second))
	if len(all) != 4 || all[2].Attempt() != 1 {
		t.Fatal(all)
	}
	a, private := keys(&all[0].Request)
	b, again := keys(&all[2].Request)
	if !slices.Equal(a, b) {
		t.Errorf("keys of a request and its retry: %x, %x", a, b)
	}
	if !private || again {
		t.Errorf("the first attempt must be private and the second must not: private %v, then %v",
			private, again)
	}
	if other, _ := keys(&all[1].Request); other[0] == a[0] {
		t.Error("two requests have a block in common")
	}
	if x, y := all[0].Text(nil), all[2].Text(nil); !slices.Equal(x, y) {
		t.Errorf("texts %v and %v", x, y)
	}
	spec.Silent = true
	if all := drive(mustClients(t, mustNew(t, s, 5), spec), 10, fails(TimedOut, clock.Second)); !all[0].Repeats() {
		t.Error("one that goes on in the server is alone with its text")
	}
	spec.Retries = 0
	all = drive(mustClients(t, mustNew(t, s, 5), spec), 10, fails(TimedOut, clock.Second))
	if _, private := keys(&all[0].Request); !private {
		t.Error("without retries a unique prompt is not private")
	}
}

// TestCommonClients: the random draws of a client depend neither on the outcome of other requests nor on the order in
// which the source is notified.
func TestCommonClients(t *testing.T) {
	s := chat()
	s.Requests = 300
	spec := ClientSpec{
		Cancel: 0.3, CancelAfter: Delay{Distribution: "exponential", Mean: clock.Minute}, Retries: 3,
		RetryOn: Retryable,
		Backoff: Backoff{Base: clock.Millisecond, Cap: 8 * clock.Second, Factor: 2, Jitter: "full"},
	}
	type draws struct {
		cancel clock.Duration
		waits  [3]clock.Duration
	}
	meet := func(closed bool, refuse func(k int64) bool) map[string]draws {
		spec, s := spec, s
		if closed {
			s.Arrivals = []Phase{{Process: "closed", Users: 7, ThinkTime: Delay{Mean: clock.Second}}}
		}
		found, left := map[string]draws{}, map[int64]clock.Time{}
		names, sent := map[int64]string{}, map[int32]int{}
		src := mustClients(t, mustNew(t, s, 5), spec)
		drive(src, 10_000, func(r *Request) End {
			first, at := r.First()
			if r.Attempt() == 0 {
				names[first] = fmt.Sprint(r.User, "-", sent[r.User])
				sent[r.User]++
			}
			d := found[names[first]]
			if r.Attempt() > 0 {
				d.waits[r.Attempt()-1] = r.Arrival.Sub(left[first])
			}
			if r.Client.Cancel > 0 {
				d.cancel = r.Client.Cancel + r.Arrival.Sub(at)
			}
			found[names[first]] = d
			end := End{How: RefusedBusy, At: r.Arrival.Add(clock.Nanosecond), First: clock.Never}
			if !refuse(first) {
				end = answers(r)
			}
			left[first] = end.At
			return end
		})
		return found
	}
	for _, closed := range []bool{false, true} {
		all := meet(closed, func(int64) bool { return true })
		some := meet(closed, func(k int64) bool { return k%3 == 0 })
		cancels, waits := 0, 0
		for name, d := range some {
			o, ok := all[name]
			if !ok {
				continue // a closed loop sends other requests, and another number of them
			}
			if d.cancel != o.cancel {
				t.Fatalf("closed %v, request %s: cancelled after %v and %v", closed, name, d.cancel, o.cancel)
			}
			if d.cancel > 0 {
				cancels++
			}
			for k, w := range d.waits {
				if w != 0 && o.waits[k] != 0 {
					waits++
					if w != o.waits[k] {
						t.Fatalf("closed %v, request %s: retry %d waits %v and %v", closed, name, k, w, o.waits[k])
					}
				}
			}
		}
		if cancels < 50 || waits < 100 {
			t.Errorf("closed %v: %d cancellations and %d waits compared", closed, cancels, waits)
		}
	}
}

func TestRetryBudget(t *testing.T) {
	s := chat()
	s.Requests = 1000
	spec := ClientSpec{Timeout: clock.Second, Retries: 5, RetryOn: Retryable, RetryBudget: 0.1,
		Backoff: Backoff{Base: 1, Cap: 1, Factor: 1}}
	requests, retries, most := 0, 0, 0.0
	for _, a := range drive(mustClients(t, mustNew(t, s, 5), spec), 100_000, fails(TimedOut, clock.Nanosecond)) {
		if a.Attempt() == 0 {
			requests++
		} else {
			retries++
		}
		most = max(most, float64(retries)/float64(requests))
	}
	if requests != 1000 || retries != 100 || most > 0.1 {
		t.Errorf("%d retries of %d requests, at most %g of those before", retries, requests, most)
	}
	// Without failures the retry budget grows up to RetryBurst.
	k := 0
	retries = 0
	drive(mustClients(t, mustNew(t, s, 5), spec), 100_000, func(r *Request) End {
		if r.Attempt() > 0 {
			retries++
		} else {
			k++
		}
		if k < 990 {
			return answers(r)
		}
		return fails(TimedOut, clock.Nanosecond)(r)
	})
	if retries != RetryBurst+1 {
		t.Errorf("%d retries after a calm, want %d saved up and 1 of the 11 requests in trouble", retries, RetryBurst)
	}
}

func TestRetryOn(t *testing.T) {
	s := chat()
	s.Requests = 1
	spec := ClientSpec{Timeout: clock.Second, Retries: 1, RetryAfter: 30 * clock.Second,
		Backoff: Backoff{Base: clock.Second, Cap: clock.Second, Factor: 1}}
	for _, c := range []struct {
		on   Causes
		how  Ending
		wait clock.Duration // 0: no retry
	}{
		{Retryable, TimedOut, clock.Second},
		{Retryable, TimedOutFirst, clock.Second},
		{Retryable, RefusedBusy, 30 * clock.Second}, // the delay that the server requires
		{Causes(0).With(RefusedBusy), TimedOut, 0},
		{Causes(0).With(TimedOut), RefusedBusy, 0},
		{Retryable, RefusedTooLong, 0},
		{Retryable, Cancelled, 0},
		{Retryable, Answered, 0},
	} {
		spec.RetryOn = c.on
		all := drive(mustClients(t, mustNew(t, s, 5), spec), 10, fails(c.how, clock.Millisecond))
		wait := clock.Duration(0)
		if len(all) == 2 {
			wait = all[1].Arrival.Sub(all[0].end.At)
		}
		if wait != c.wait || all[0].again != (c.wait > 0) {
			t.Errorf("%v with %b: %d attempts, the second after %v, want %v", c.how, c.on, len(all), wait, c.wait)
		}
	}
	spec.RetryOn, spec.RetryAfter = Retryable, 2*clock.Minute // longer than clients accept
	if all := drive(mustClients(t, mustNew(t, s, 5), spec), 10, fails(RefusedBusy, 0)); len(all) != 2 ||
		all[1].Arrival.Sub(all[0].end.At) != clock.Second {
		t.Errorf("a Retry-After of 2 min: %+v", all)
	}
}

// TestGone: a user who has lost interest does not retry; in a closed loop the user then sends the next request.
func TestGone(t *testing.T) {
	s := chat()
	s.Arrivals = []Phase{{Process: "closed", Users: 1}}
	s.Requests = 2
	spec := ClientSpec{
		Timeout: 3 * clock.Second, Cancel: 1, CancelAfter: Delay{Mean: 10 * clock.Second}, Retries: 9,
		RetryOn: Retryable,
		Backoff: Backoff{Base: clock.Second, Cap: clock.Second, Factor: 1},
	}
	all := drive(mustClients(t, mustNew(t, s, 5), spec), 10, func(r *Request) End {
		if r.Client.Cancel < r.Client.Timeout {
			return fails(Cancelled, r.Client.Cancel)(r)
		}
		return fails(TimedOut, 3*clock.Second)(r)
	})
	var cancels []string
	for _, a := range all {
		cancels = append(cancels, fmt.Sprintf("%g:%g", a.Arrival.Seconds(), a.Client.Cancel.Seconds()))
	}
	if got, want := strings.Join(cancels, " "), "0:10 4:6 8:2 10:10 14:6 18:2"; got != want {
		t.Errorf("attempts and the remaining time until the user cancels: %s, want %s", got, want)
	}
	spec.Backoff = Backoff{Base: 8 * clock.Second, Cap: 8 * clock.Second, Factor: 1}
	all = drive(mustClients(t, mustNew(t, s, 5), spec), 10, fails(TimedOut, 3*clock.Second))
	if len(all) != 2 || all[0].again || all[1].Arrival != clock.Time(10*clock.Second) {
		t.Errorf("a backoff that outlasts the user's interest: %+v", all)
	}
}

// TestReading: a user sends the next request after reading the output.
func TestReading(t *testing.T) {
	s := chat()
	s.Arrivals = []Phase{{Process: "closed", Users: 1, ThinkTime: Delay{Mean: clock.Second}}}
	s.Output = LengthsSpec{Distribution: "fixed", Value: 21}
	s.Requests = 3
	// outputs take 2 s, the first token 1 s
	for reading, want := range map[float64]clock.Time{0: 3e12, 5: 6e12, 100: 3e12} {
		all := drive(mustClients(t, mustNew(t, s, 5), ClientSpec{Reading: reading}), 10, answers)
		if len(all) != 3 || all[1].Arrival != want || all[2].Arrival != 2*want {
			t.Errorf("at %g tokens/s: %+v", reading, all)
		}
	}
	all := drive(mustClients(t, mustNew(t, s, 5), ClientSpec{Reading: 5, Timeout: clock.Second}), 10,
		fails(TimedOut, clock.Second))
	if all[1].Arrival != clock.Time(2*clock.Second) {
		t.Errorf("the next request arrives at %v, want it after the timeout and the think time", all[1].Arrival)
	}
}

// TestLogicalEnd: the source under the clients is notified once per request, when the request ends.
func TestLogicalEnd(t *testing.T) {
	s := chat()
	s.Arrivals = []Phase{{Process: "closed", Users: 3, ThinkTime: Delay{Mean: clock.Second}}}
	s.Requests = 60
	spec := ClientSpec{Timeout: 5 * clock.Second, Retries: 2, RetryOn: Retryable,
		Backoff: Backoff{Base: clock.Second, Cap: clock.Second, Factor: 1}}
	busy := map[int32]int64{} // request in progress, and one more, by user
	n := 0
	src := mustClients(t, mustNew(t, s, 5), spec)
	for range 1000 {
		if _, ok := src.Peek(); !ok {
			break
		}
		r := src.Next()
		first, _ := r.First()
		if b := busy[r.User]; b != 0 && b != first+1 {
			t.Fatalf("user %d sends request %d while %d has not ended", r.User, first, b-1)
		}
		busy[r.User] = first + 1
		how := TimedOut
		if r.ID%4 == 0 {
			how = Answered
		}
		if !src.Done(&r, End{How: how, At: r.Arrival.Add(5 * clock.Second), First: r.Arrival}) {
			delete(busy, r.User)
			n++
		}
	}
	if n != 60 || src.(*clientSource).active.Len() != 0 {
		t.Errorf("%d requests ended, and %d are remembered", n, src.(*clientSource).active.Len())
	}
}

func TestClientsByClass(t *testing.T) {
	s := chat()
	s.Requests = 10
	src := mustClients(t, &classes{mustNew(t, s, 5)}, ClientSpec{Timeout: clock.Second}, ClientSpec{})
	for range 10 {
		r := src.Next()
		if (r.Client != nil) != (r.Class == 0) {
			t.Errorf("class %d: %+v", r.Class, r.Client)
		}
		src.Done(&r, answers(&r))
	}
	if src := mustNew(t, s, 5); mustClients(t, src, ClientSpec{}, ClientSpec{}) != src {
		t.Error("patient clients need no source of their own")
	}
}

// classes gives requests two classes in turn.
type classes struct{ Source }

func (c *classes) Next() Request {
	r := c.Source.Next()
	r.Class = uint16(r.ID % 2)
	return r
}

func TestClientFaults(t *testing.T) {
	ok := Backoff{Base: clock.Second, Cap: clock.Second, Factor: 1}
	for _, c := range []struct {
		spec ClientSpec
		want string
	}{
		{ClientSpec{FirstTimeout: -clock.Second}, "clients.ttft_timeout: -1s is not allowed"},
		{ClientSpec{Timeout: clock.Second, FirstTimeout: 2 * clock.Second},
			"clients.ttft_timeout: 2s exceeds timeout, 1s (want timeout or less)"},
		{ClientSpec{Cancel: 1.5}, "clients.cancel.probability: 1.5 is not allowed (want 0 to 1)"},
		{ClientSpec{Cancel: 0.5, CancelAfter: Delay{Mean: clock.Second, CV: 2}},
			"clients.cancel.after.cv: does not apply to fixed (want"},
		{ClientSpec{Cancel: 0.5, CancelAfter: Delay{Distribution: "cauchy"}},
			`clients.cancel.after.distribution: "cauchy" is not known`},
		{ClientSpec{Retries: -1}, "clients.retries: -1 is not allowed (want 0 to 1000)"},
		{ClientSpec{Retries: 2}, "clients.retry_on: is empty, but retries is 2 (want timeout, busy, connection or several)"},
		{ClientSpec{RetryOn: Causes(0).With(Answered)}, "clients.retry_on: answered, cancelled"},
		{ClientSpec{Backoff: Backoff{Base: 2 * clock.Second, Cap: clock.Second, Factor: 1}},
			"clients.backoff.cap: 1s is not allowed (want base, which is 2s, to"},
		{ClientSpec{Backoff: Backoff{Base: 2, Cap: 3}}, "clients.backoff.factor: 0 is not allowed (want 1 or more)"},
		{ClientSpec{Backoff: Backoff{Base: 1, Cap: 1, Factor: 1, Jitter: "some"}},
			`clients.backoff.jitter: "some" is not known (want none, full, equal or openai)`},
		{ClientSpec{Backoff: ok, RetryBudget: 2}, "clients.retry_budget: 2 is not allowed"},
		{ClientSpec{Reading: math.NaN()}, "clients.reading: NaN is not allowed"},
		{ClientSpec{RetryAfter: -clock.Second}, "clients.retry_after: -1s is not allowed"},
	} {
		err := ValidateClients(c.spec)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want %s", c.spec, err, c.want)
		}
	}
	if err := ValidateClients(ClientSpec{Retries: 2, RetryOn: Retryable, Backoff: ok}); err != nil {
		t.Error(err)
	}
}
