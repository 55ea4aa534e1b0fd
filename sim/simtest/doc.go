// Package simtest holds what tests of engines and policies stand on: a naive engine that defines what
// the simulator does, a recorder to compare two runs with, a language for scenario files, and generators
// of random cases.
//
// [naive.Run] walks every sequence in every iteration and keeps explicit block tables. It is slow and plain,
// and it is the definition: the real engine has to give the same [Recorder], token for token, whatever the policy.
//
// # Testing a policy
//
// Whoever writes a policy adds it to [Policies]: its name, and how it is made from its knobs. [Verify] then runs it
// on random engines and loads, and [Env] runs scenario files that say step by step what it does; they
// stand in testdata, in a directory that has the policy's name. [CheckRecording] asserts what holds in every run.
// [FuzzPolicy] is a policy that does anything at all, for those who change an engine.
//
// # What an engine does
//
// A request is sent at its Arrival and reaches the engine's queue when the front end is through with it, at
// Arrival + NetworkIn + Frontend + FrontendPerToken·InputTokens. It is rejected on arrival when its prompt
// reaches the longest sequence allowed, or when the pool could not hold it alone. Its answer is cut
// where it would exceed the longest sequence.
//
// The engine acts at boundaries: the end of the oldest iteration in flight or, when none is in flight, the
// instant at which a request reaches the queue. What happens between two boundaries is seen at
// the next one. At a boundary, in this order:
//
//  1. requests of which the server has heard that their client left are removed, in the order (that instant, ID): seat and
//     blocks are free at once, tokens of theirs that are still in flight will be dropped;
//  2. the iteration that ends is processed in batch order: tokens are delivered, sequences that have
//     their last one leave the running batch and free their blocks;
//  3. requests that have reached the queue join it, in the order (instant, ID);
//  4. iterations are composed and launched until one is in flight, or two under asynchronous
//     scheduling, or nothing can be scheduled.
//
// With a [sched.Order] the queue is ordered by (key, arrival, ID) instead. The cause that the levels
// give for a waiting head is that of the last composition of the boundary, be it an empty one.
//
// An iteration starts when it is composed or when the previous one ends, whichever is later.
//
// With [sim.Config.MaxQueuedRequests] or MaxQueuedTokens set, a request that reaches the queue when as many wait
// and run already, or as many prompt tokens of those that wait and run are not yet given to an iteration, is
// rejected at that instant, and its source is told at once; its record says Busy. Requests that ended
// at a boundary do not count in those that reach the queue at that instant because of it.
//
// # Declared lengths
//
// A client declares how long its answer may get: [sim.Config.MaxTokens], or the length of the answer if that
// is longer, or exactly that length if MaxTokens is 0; cut at the longest sequence. A request is rejected if the pool
// could not hold prompt and declared answer. An answer that is shorter than declared ends by a token that
// nobody foresees. If an iteration in flight already has a part of the sequence when that token is processed,
// the sequence keeps seat and blocks, and is given nothing more, until that iteration has been
// processed too; the token that it produces there is dropped. The client has its last token at the usual instant,
// and the source is told then; the record is complete, and the request leaves the system, when the seat is
// free. Such a sequence that had been preempted meanwhile ends from the queue at once.
//
// # Host time
//
// The host works CPUStep + CPUPerSequence·sequences for an iteration. Under synchronous scheduling
// the iteration lasts that much longer; under asynchronous scheduling it lasts at least that long.
//
// # Swapping
//
// A sequence that is swapped out leaves its blocks, and takes as many in host memory as its computed tokens need,
// the charge for windowed layers included. Admitted again it takes blocks for its computed tokens and those that it
// is given; its blocks in host memory are free at once. It goes on as it was: a decoding sequence
// decodes, one in prefill has the next chunk. The next iteration that is launched lasts HostFemtosPerBlock
// longer for each block that was moved since the last, either way. There is no swapping with a prefix cache.
//
// # Pipelines
//
// With [sim.Config.Stages] so many iterations are in flight: at a boundary they are composed until there are as many,
// or one is empty. The oldest is processed as ever, and alone.
//
// A sequence with a token in flight misses nothing, and does not decode. A chunk of its prefill in flight does not
// matter. A preempted request with a token in flight keeps its place in the queue; while it is the head the queue shows
// nobody, and the policy holds it. Every token of a sequence that is given something is known, so that blocks enter the
// prefix cache as under synchronous scheduling, and an end that nobody foresaw wastes nothing.
//
// The host begins with an iteration when it is composed and the one before is done with. The iteration enters the first
// stage when the host is done with it and the one before has left the stage; each further stage when it has left the
// stage before, a hop later, and the one before has left this one. [clifftop/model.DivideStages] gives stages and hops.
// It ends when it leaves the last stage.
//
// A span begins when the iteration is composed or the one before it ends, whichever is later. No gap is in a span: each
// is from the end of the iteration that gave the last token. What is shared out among tokens is the sum over the
// stages.
//
// # KV elsewhere
//
// With a [sim.Connector] a waiting request can be loaded, if tokens behind those that the prefix cache has are
// elsewhere and none of its answer is in flight. It takes the cached blocks, and others up to all its known tokens, and
// is out of the queue. What it loads is transferred from the instant of the composition on. At the first boundary at or
// after the transfer's end, or at this end if no iteration is in flight, it comes back into the queue, ahead of all
// that were not loaded, in the order in which loads began. Its computed tokens are then those cached and loaded, but
// for the last known one, and their full blocks enter the prefix cache. If the load failed they are those cached. The
// blocks that it holds beyond its computed tokens count as reserved once it runs. If its client leaves before, its
// blocks are kept until the transfer has ended.
//
// Tiers keep chunks under the keys of their last blocks. The tokens of a prefill are copied to tiers that are written
// through when the iteration that completes it is processed, if the sequence runs then, and when a sequence leaves the
// running batch all its computed blocks are that are in the prefix cache; each time from the last chunk to the first. A
// chunk that the tier has counts as used then. Tiers that are written back to get each block that the pool evicts, or
// each chunk that the tier before evicts, at that instant. A load uses the chunks that it brings, from the last to the
// first; they stay in the tier.
//
// Each tier has a link, which the copies, one transfer in all, and the loads share by max-min fairness: see
// [naive.Network]. A run ends when nothing but copies is on its way.
//
// The first tiers of the list that have enough chunks in a row make the load: all tiers if that is worth it, otherwise
// all but the last, and so on. A request whose KV is on another replica is loaded from there and not from tiers, once.
//
// A leg with a lease keeps the blocks of a request that has ended. They are freed at the first boundary at or after the
// lease's end, before what has been loaded is seen.
//
// # Speculative decoding
//
// When a token of a sequence is processed that does not end it, drafts are proposed for its next iteration:
// [sim.Speculative.Tokens] of them, or by a draw none with n-gram lookup, and at most as many as the longest sequence
// has room for before its last token. A decoding sequence misses these beside its token. The drafts that it is given
// are computed with the token; the iteration produces one token and one for each draft that is accepted before the
// first that is not, as far as the answer goes. What was computed for rejected drafts does not count when the iteration
// has been processed, but the blocks stay. A preempted sequence loses its drafts. Every draw depends on the request and
// on the number of iterations in which it has decoded before: the first is for whether there are drafts, the k-th after
// it for the k-th draft.
//
// With methods other than n-gram lookup whoever is given tokens takes room for as many more as there are drafts, up to
// the longest sequence. A request is rejected if the pool could not hold alone its last iteration with all drafts and
// this room. With EAGLE and MTP a prefix hit goes without its last block.
//
// Neither DecodeAll nor DecodeFirst gives anything. A gap between tokens is from the end of one iteration of a sequence
// to that of its next, however many tokens it brings.
//
// # Padding
//
// The padded rows count as decodes, context and produced tokens in what the step timer is asked, not in what is
// reported; so do padded chunks.
//
// # How vLLM composes an iteration
//
// What a policy may do is told by package [clifftop/sim/sched]. [sched.VLLM] does this: every sequence has known
// tokens, its prompt and the answer so far, and computed tokens, whose keys and values are in the cache once the
// iterations in flight have ended. The running sequences get their missing tokens first, in order of admission, as long
// as the budget of tokens lasts. One that finds no block preempts: the last admitted sequence, or the least urgent,
// which can be itself; then the walk ends. If nobody was preempted, the queue is admitted from its head while there are
// seats, budget and blocks; nobody overtakes a head that does not fit. A sequence whose missing
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
// An admission also notes which tokens the cache has lost: those of the blocks behind the run that it finds, hit or
// not, as long as each was evicted before or is in the cache, out of reach. What of them is then computed for the first
// time counts as lost. With a radix cache these are the pages behind the match, as long as each was in a leaf that was
// evicted.
//
// # GPU time
//
// What copies to and from host memory and the host's time leave of an iteration's length is shared out among the tokens
// that it computes, those of padding included: so many whole femtoseconds for each. What is left over is added to the
// next iteration's if that computes as many tokens, and is nobody's otherwise. Requests are charged for their tokens
// when an iteration is launched, be there still a client in the end or not.
//
// # Clients
//
// A client leaves at Arrival + Timeout, + Cancel or + FirstTimeout, whichever is first, if by then the last token of
// its answer, or for FirstTimeout the first one, has not come: if the iteration that produces it has not been processed
// at a boundary before that instant. Of equal limits Timeout counts before Cancel, and this before FirstTimeout.
//
// The engine acts on a departure at its next boundary. A request that is still in the front end, or just leaving it,
// ends at that instant without reaching the queue. A silent client does not tell: its request goes on, in the front
// end, in the queue and in the batch, to its last token, or until it is rejected; then it ends. How a request ended is
// told as the client has it: one whose client left is timed out or cancelled, served or not.
//
// The source is told of an ending once, and before the record of the request is reported.
//
// The k-th sequence that produces a token in an iteration, in batch order, is seen by its client
// k·StreamPerSequence after the iteration's end. Sequences whose client has left count in k. Limits of clients do not
// wait for this delay. A request whose client left may have a FirstToken and, if it was served nevertheless, a
// LastToken; its client has seen the first one if that had come in time, and never sees the last.
//
// # Network
//
// A request is NetworkIn on its way to the front end, and whatever the server says, tokens and rejections, NetworkOut
// on its way to the client. A request that is too long is rejected when it comes to the front end. What a client waits
// for has come in time if it was processed at a boundary before NetworkOut ahead of the limit, though not before
// Arrival. At that instant it is settled that the client leaves, at the limit, and that it sees nothing that is
// processed later; the source is told then. The server hears it NetworkIn after the limit; what it does until
// then it does in vain.
package simtest
