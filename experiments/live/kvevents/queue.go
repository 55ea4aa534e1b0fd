package kvevents

import "sync"

// queue is a queue with limits on the number of its elements and on their size in bytes. It is safe for concurrent use.
type queue[T any] struct {
	most, mostBytes int

	mu      sync.Mutex
	list    []T
	first   int // before it the list is empty
	bytes   int
	closed  bool
	arrived chan struct{}
}

func newQueue[T any](most, mostBytes int) *queue[T] {
	return &queue[T]{most: most, mostBytes: mostBytes, arrived: make(chan struct{}, 1)}
}

// push adds an element of a size. It reports false if there is no room for it.
func (q *queue[T]) push(x T, bytes int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.list)-q.first >= q.most || q.bytes+bytes > q.mostBytes {
		return false
	}
	if q.first > 64 && q.first > len(q.list)/2 {
		n := copy(q.list, q.list[q.first:])
		clear(q.list[n:])
		q.list, q.first = q.list[:n], 0
	}
	q.list = append(q.list, x)
	q.bytes += bytes
	q.signal()
	return true
}

// pop waits for an element and removes it. size returns its size in bytes. It reports false when the queue is closed
// and empty.
func (q *queue[T]) pop(size func(T) int) (x T, ok bool) {
	for {
		q.mu.Lock()
		if q.first < len(q.list) {
			x = q.list[q.first]
			var none T
			q.list[q.first] = none
			q.first++
			q.bytes -= size(x)
			q.mu.Unlock()
			return x, true
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return x, false
		}
		<-q.arrived
	}
}

// close ends the queue. Its elements can still be removed.
func (q *queue[T]) close() {
	q.mu.Lock()
	q.closed = true
	q.signal()
	q.mu.Unlock()
}

// signal wakes the goroutine that waits.
func (q *queue[T]) signal() {
	select {
	case q.arrived <- struct{}{}:
	default:
	}
}

func (q *queue[T]) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list) - q.first
}
