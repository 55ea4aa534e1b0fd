package collect

import (
	"clifftop/report"
	"clifftop/sim/event"
	"clifftop/workload"
)

// attemptCounts counts logical requests and their attempts. A logical request is what a user asks for once. Its client
// may send it several times. It ends with its last attempt.
type attemptCounts struct {
	offered  int64 // logical requests
	outcomes [event.Failed + 1]int64
	refusals [event.NotReady + 1]int64

	attempts int64
	recorded int64                            // attempts that have ended,
	left     int64                            // of them because the client left, or the replica failed
	again    [workload.Disconnected + 1]int64 // and by their endings those that were not the last

	// Sums of hashes, in which each request that began must meet one that ended, and each attempt that was
	// announced one that came.
	begun, announced uint64
}

// arrived counts an attempt; first says that it is the first of its request.
func (l *attemptCounts) arrived(r *workload.Request) (first bool) {
	l.attempts++
	id, _ := r.First()
	if n := r.Attempt(); n > 0 {
		l.announced -= workload.Hash(uint64(id), uint64(n))
		return false
	}
	l.offered++
	if r.Client != nil {
		l.begun += workload.Hash(uint64(id), 0)
	}
	return true
}

// finished counts the end of an attempt; last says that its request has ended with it.
func (l *attemptCounts) finished(rec *event.Record) (last bool) {
	r := &rec.Request
	id, _ := r.First()
	l.recorded++
	if rec.Outcome == event.TimedOut || rec.Outcome == event.Cancelled || rec.Outcome == event.Failed {
		l.left++
	}
	if rec.Again {
		l.again[rec.Ending]++
		l.announced += workload.Hash(uint64(id), uint64(r.Attempt())+1)
		return false
	}
	l.outcomes[rec.Outcome]++
	l.refusals[rec.Refusal]++
	if r.Client != nil {
		l.begun -= workload.Hash(uint64(id), 0)
	}
	return true
}

// ended is the number of requests that ended, in whatever way.
func (l *attemptCounts) ended() (n int64) {
	for _, k := range l.outcomes {
		n += k
	}
	return n
}

// requests are the counts.
func (l *attemptCounts) requests() report.Requests {
	return report.Requests{
		Offered:   l.offered,
		Completed: l.outcomes[event.Completed], Rejected: l.outcomes[event.Rejected],
		TimedOut: l.outcomes[event.TimedOut], Cancelled: l.outcomes[event.Cancelled], Failed: l.outcomes[event.Failed],
		RejectedBusy: l.refusals[event.Busy] + l.refusals[event.NotReady], RejectedLong: l.refusals[event.NeverFits],
		InSystemAtEnd: l.offered - l.ended(),
		Attempts:      l.attempts, Retries: l.attempts - l.offered,
		RetriedAfter: report.RetriedAfter{
			FirstTimeout: l.again[workload.TimedOutFirst], Timeout: l.again[workload.TimedOut],
			Busy: l.again[workload.RefusedBusy], Connection: l.again[workload.Disconnected],
		},
	}
}

// check asserts that no logical request is lost or counted twice, once no attempt is in the system. In a run that was
// stopped some may wait for their backoff.
func (l *attemptCounts) check(stopped bool, equal func(what string, a, b any)) {
	var again int64
	for _, n := range l.again {
		again += n
	}
	waiting := again - (l.attempts - l.offered)
	equal("requests that have not ended, and those that wait to be sent again", l.offered-l.ended(), waiting)
	if !stopped || waiting < 0 {
		equal("attempts that were announced and have not come, at the end of all requests", waiting, int64(0))
	}
	if waiting == 0 {
		equal("checksums of the requests that began and of those that ended: their difference", l.begun, uint64(0))
		equal("checksums of the attempts that were announced and of those that came: their difference", l.announced,
			uint64(0))
	}
}
