// Package simtest holds what tests of engines and policies stand on: a naive engine that defines what
// the simulator does, a recorder to compare two runs with, a language for scenario files, and generators
// of random cases.
//
// [Naive] walks every sequence in every iteration and keeps explicit block tables. It is slow and plain,
// and it is the definition: the real engine has to give the same [Tape], token for token. [Draw] makes cases for
// the comparison, [CheckTape] asserts what holds in every run, and [Env] runs scenario files that say
// step by step what a policy does.
//
// # What an engine does
//
// A request is sent at its Arrival and reaches the engine's queue when the front end is through with it, at
// Arrival + Frontend + FrontendPerToken·InputTokens. It is rejected on arrival when its prompt
// reaches the longest sequence allowed, or when the pool could not hold it alone. Its answer is cut
// where it would exceed the longest sequence.
//
// The engine acts at boundaries: the end of the oldest iteration in flight or, when none is in flight, the
// instant at which a request reaches the queue. What happens between two boundaries is seen at
// the next one. At a boundary, in this order:
//
//  1. requests whose client has left are removed, in the order (instant of leaving, ID): seat and
//     blocks are free at once, tokens of theirs that are still in flight will be dropped;
//  2. the iteration that ends is processed in batch order: tokens are delivered, sequences that have
//     their last one leave the running batch and free their blocks;
//  3. requests that have reached the queue join it, in the order (instant, ID);
//  4. iterations are composed and launched until one is in flight, or two under asynchronous
//     scheduling, or nothing can be scheduled.
//
// Under the priority policy the queue is ordered by (priority, arrival, ID) instead. The cause that the levels
// give for a waiting head is that of the last composition of the boundary, be it an empty one.
//
// An iteration starts when it is composed or when the previous one ends, whichever is later.
//
// # How an iteration is composed
//
// Every sequence has known tokens, its prompt and the answer so far, and computed tokens, whose keys and
// values are in the cache once the iterations in flight have ended. The running sequences get their
// missing tokens first, in order of admission, as long as the budget of tokens lasts. One that
// finds no block preempts: the last admitted sequence, or the least urgent, which can be itself; then the
// walk ends. If nobody was preempted, the queue is admitted from its head while there are seats,
// budget and blocks; nobody overtakes a head that does not fit. A sequence whose missing
// tokens are all scheduled produces a token at the end of the iteration.
//
// Computed tokens, and tokens of the answer that are on their way, count as soon as they are scheduled.
// A sequence whose whole answer is scheduled keeps seat and blocks until its last token is processed.
//
// # Preemption
//
// A preempted sequence loses its blocks (they keep their keys) and all computed tokens, and goes to the
// head of the queue, or where its urgency says. It keeps its answer; tokens in flight are delivered. When
// it is admitted again, prompt and answer so far are prefilled together. If its whole
// answer was on its way already, it completes from the queue.
//
// A walk that ends by preempting its own sequence may leave an empty iteration. When nothing is in flight the
// engine then composes again at the same instant, as often as it takes; otherwise it waits for the next boundary.
//
// # Prefix cache
//
// A full block is entered under its key when its last token is scheduled or, if that token was still
// in flight then, when it is delivered. Entering does not wait for the iteration: the next request
// of the same iteration can hit. A sequence that is preempted later in the same iteration
// leaves the keys it entered. A key can stand for several blocks; the first entered is hit. An
// admission takes the longest run of leading blocks that have keys in the cache, but computes at least one token.
//
// A block without references is free, and keeps its key until it is given out again. Blocks are given
// out from the front of the free list. A sequence frees its blocks from the last to the first: those with a
// key go to the back of the list one after the other, those without go to its front, the last block
// of the sequence foremost.
//
// # Clients
//
// A client that leaves does so at Arrival + Patience, if its last token has not been processed at a
// boundary before that instant. The source is told then, the engine acts at its next boundary. A request
// that is still in the front end, or just leaving it, ends at that instant without reaching the queue.
//
// The k-th sequence that produces a token in an iteration, in batch order, is seen by its client
// k·StreamPerSequence after the iteration's end. Sequences whose client has left count in k. A cancelled
// request has a FirstToken if one was delivered; it never has a LastToken.
package simtest
