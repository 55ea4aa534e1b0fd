// Package simtest has what tests of engines and policies need: a naive engine that defines what the simulator does, a
// recorder to compare two runs, a language for scenario files, and generators of random cases.
//
// [naive.Run] visits every sequence in every iteration and keeps explicit block tables. It is slow and simple, and it
// is the definition: with every policy the real engine must give the same [Recorder], token for token.
//
// # Testing a policy
//
// Add a new policy to [Policies]: its name, and how it is made from its knobs. [Verify] then runs it on random engines
// and loads, and [Env] runs scenario files that describe step by step what it does; they are in testdata, in a
// directory with the policy's name. [CheckRecording] asserts what holds in every run. [FuzzPolicy] does at random all
// that a policy may do; use it when you change an engine.
//
// # What an engine does
//
// A request is sent at its Arrival. It reaches the engine's queue after the front end's time, at Arrival + NetworkIn +
// Frontend + FrontendPerToken·InputTokens. It is rejected on arrival when its prompt reaches the maximum model length,
// or when the pool could not hold it alone. Its output is cut at the maximum model length.
//
// The engine acts at boundaries. A boundary is the end of the oldest iteration in flight or, when none is in flight,
// the instant at which a request reaches the queue. What happens between two boundaries takes effect at the next one.
// At a boundary, in this order:
//
//  1. Requests are removed whose clients' aborts have reached the server, in the order (that instant, ID). Seat and
//     blocks are free at once; tokens that are still in flight will be dropped.
//  2. The iteration that ends is processed in batch order: tokens are delivered; sequences that have their last one
//     leave the running batch and free their blocks.
//  3. Requests that have reached the queue join it, in the order (instant, ID).
//  4. Iterations are composed and launched until one is in flight (two with asynchronous scheduling), or nothing can be
//     scheduled.
//
// With a [sched.Order] the queue is ordered by (key, arrival, ID) instead. When requests wait, the levels give the
// cause of the last composition of the boundary, even if that composition was empty.
//
// An iteration starts when it is composed or when the previous one ends, whichever is later.
//
// MaxQueuedRequests of [engine.Config] limits the requests that wait and run; MaxQueuedTokens limits their prompt
// tokens that have not been scheduled. A request that reaches the queue at or above a limit is rejected at that instant
// as Busy, and the source is told at once. For requests that a client sends because of an end at a boundary, and that
// reach the queue at the same instant, that end already counts.
//
// # Declared lengths
//
// A client declares the maximum length of its output: [engine.Config.MaxTokens], or the length of the output if that is
// longer. If MaxTokens is 0 it declares the exact length. The maximum model length cuts it. A request is rejected if
// the pool could not hold its prompt and its declared output. An output that is shorter than declared ends with an EOS
// that the engine cannot predict. If an iteration in flight already has a part of the sequence when that token is
// processed, the seat and the blocks of the sequence are free at once all the same, as in vLLM; the token that it
// produces there is dropped.
//
// # Host time
//
// The host needs CPUStep + CPUPerSequence·sequences for an iteration. With synchronous scheduling this adds to the
// iteration's time; with asynchronous scheduling it is a lower bound of it.
//
// # Swapping
//
// A sequence that is swapped out frees its blocks, and takes as many in host memory as its computed tokens need,
// including the charge for windowed layers. When it is admitted again, it takes blocks for its computed tokens and for
// those that it is given; its blocks in host memory are free at once. It continues in its state: a decoding sequence
// decodes, one in prefill has the next chunk. The next iteration that is launched takes HostFemtosPerBlock longer for
// each block that was moved since the last one, in either direction. There is no swapping with a prefix cache.
//
// # Pipelines
//
// With pipeline stages as many iterations are in flight as there are stages: at a boundary iterations are composed
// until there are that many, or one is empty. Only the oldest is processed.
//
// A sequence with a token in flight misses nothing, and does not decode. A chunk of its prefill in flight does not
// matter. A preempted request with a token in flight keeps its place in the queue; while it is the head, the view shows
// an empty queue, and the cause is "held by policy". A sequence that is given tokens knows all its tokens. Blocks
// therefore enter the prefix cache as with synchronous scheduling, and an unpredicted EOS wastes nothing.
//
// The host begins with an iteration when it is composed and the host has finished the one before. The iteration enters
// the first stage when the host has finished it and the iteration before has left that stage. It enters each further
// stage when it has left the stage before, a hop later, and the iteration before has left this one.
// [clifftop/model.DivideStages] gives stages and hops. The iteration ends when it leaves the last stage.
//
// A span begins when the iteration is composed or the one before it ends, whichever is later. Spans have no gaps
// between tokens: each gap is measured from the end of the iteration that gave the last token. The time that is charged
// to tokens is the sum over the stages.
//
// # KV connector
//
// With an [engine.Connector] a waiting request can be loaded, if KV that follows its cached tokens is in a tier or on
// another replica, and none of its output is in flight. It takes the cached blocks, and others up to all its known
// tokens, and leaves the queue. The transfer begins at the instant of the composition. At the first boundary at or
// after the transfer's end, or at this end if no iteration is in flight, it returns to the queue, ahead of all that
// were not loaded, in the order in which loads began. Its computed tokens are then the cached and the loaded ones,
// except the last known token; their full blocks enter the prefix cache. If the load failed, only the cached ones are
// computed. The blocks that it holds beyond its computed tokens count as reserved once it runs. If its client leaves
// before, its blocks are kept until the transfer has ended.
//
// Tiers keep chunks under the keys of their last blocks. A write-through tier gets the tokens of a prefill when the
// iteration that completes it is processed, if the sequence runs then. When a sequence leaves the running batch it gets
// all the sequence's computed blocks that are in the prefix cache. Each copy goes from the last chunk to the first. A
// chunk that the tier already has counts as used then. A write-back tier gets each block that the pool evicts, or each
// chunk that the tier before evicts, at that instant. A load uses its chunks in the tier from the last to the first;
// they stay there.
//
// Each tier has a link. Loads share it by max-min fairness with the copies, which are one transfer in all: see
// [naive.Network]. A run ends when only copies are in flight.
//
// A load uses the first tiers of the list that have enough chunks in a row: all tiers if that is faster than computing,
// otherwise all but the last, and so on. A request whose KV is on another replica is loaded from there once, and not
// from tiers.
//
// A handoff with a lease keeps the blocks of a request that has ended. They are freed at the first boundary at or after
// the lease's end, before loads are received.
//
// # Speculative decoding
//
// When a token is processed that does not end its sequence, drafts are proposed for the next iteration:
// [engine.Speculative.Tokens] of them, or with n-gram lookup none by a random draw, and at most as many as the maximum
// model length has room for before its last token. A decoding sequence misses these in addition to its token. The
// drafts that it is given are computed with the token. The iteration produces one token, and one for each draft before
// the first rejected one, up to the output's length. Rejected drafts no longer count as computed when the iteration has
// been processed, but their blocks stay. A preempted sequence loses its drafts. Each draw depends on the request and on
// the number of its decode iterations before: the first one decides whether there are drafts, the k-th after it decides
// the k-th draft.
//
// With methods other than n-gram lookup, a sequence that is given tokens takes room for as many more as there are
// drafts, up to the maximum model length. A request is rejected if the pool could not hold alone its last iteration
// with all drafts and this room. With EAGLE and MTP a prefix hit excludes its last block.
//
// An engine may take no slots ahead when it admits a request, and each sequence of an iteration may take additional
// slots of the token budget. A request that misses one token may be admitted with dummy drafts, which are computed and
// rejected.
//
// With asynchronous scheduling the next iteration is composed before it is known which drafts are accepted. It takes as
// many drafts for each decoding sequence as there may be. Drafts in flight count as accepted: known, computed and
// generated tokens include them until their iteration has been processed. A sequence is given no more tokens when the
// iteration in flight completes its longest output even without its drafts. An iteration that computes for a sequence
// whose output ends before produces one token, which is dropped. A sequence that is preempted keeps only tokens that
// the iterations in flight really produce.
//
// Without asynchronous scheduling, blocks enter the prefix cache only with tokens that are known when an iteration is
// composed: those that accepted drafts fill in the last iteration of a sequence do not.
//
// DecodeAll and DecodeFirst schedule nothing. A gap between tokens is measured from the end of one iteration of a
// sequence to the end of its next, however many tokens that produces.
//
// # KV cache groups
//
// With [engine.Config.Hybrid], each group of layers has a block table, and all groups share the pool. When a sequence
// is given tokens (Grow), it first frees, one group after the other, the blocks that no further token attends to: those
// before the window or the chunk of the first token that is not processed. Tokens in flight are not processed, so that
// the blocks of a whole chunk stay until the sequence is next given tokens, and with asynchronous scheduling an
// iteration longer. If there are enough blocks for all groups, it takes them, one group after the other. It frees the
// rest in the order of the groups, in each from the last block to the first.
//
// The prefix cache has blocks by group. A lookup takes the longest prefix that all groups have: full attention needs
// all blocks, a window those that hold the tokens before it, a chunk those of the chunk, a recurrent state the last
// one. The hit is a multiple of all block sizes. Windows and recurrent states enter only the blocks that a hit needs
// at a multiple of Retention, at the last multiple of all block sizes before the end of the prompt, and at a junction:
// where the lookup of the same request found that full attention has more than they. A request with a recurrent state
// that was entered in the iteration that is composed is not admitted.
//
// With EAGLE and MTP, a kind of groups that is looked up first looks for one block more than its hit, and leaves it
// out; it does so again only after another kind has shortened the hit. The block behind a boundary therefore enters the
// cache too.
//
// Recurrent states in align mode exist only at the ends of chunks, for which policies cut chunks (Clip). A sequence
// holds the last state and the one before. Blocks between have no state; with asynchronous scheduling, the states of
// earlier chunks stay until the sequence leaves, as in vLLM.
//
// DecodeAll and DecodeFirst schedule nothing. An admission takes the blocks that it lacks and the cached ones without
// references (Needs).
//
// # Padding
//
// The step timer counts padded rows as decodes, context and produced tokens; reports do not. The same holds for padded
// chunks.
//
// # How vLLM composes an iteration
//
// Package [clifftop/sim/sched] says what a policy may do. [sched.VLLM] works as follows. Every sequence has known
// tokens, its prompt and the output so far, and computed tokens, whose KV is in the cache once the iterations in flight
// have ended. The running sequences get their missing tokens first, in order of admission, as long as the token budget
// lasts. If there is no block for one, the last admitted or the least urgent sequence is preempted, which can be that
// sequence itself; then the walk ends. If none was preempted, requests are admitted from the head of the queue while
// there are seats, budget and blocks; none overtakes a head that does not fit. A sequence whose missing tokens are all
// scheduled produces a token at the end of the iteration.
//
// With max_loras, a waiting request with an adapter is passed over in an iteration that uses as many other adapters
// already: those of running sequences that are given tokens, and of requests that are admitted. Requests behind it are
// admitted in its place. A request without an adapter is never passed over.
//
// Tokens count as computed, and output tokens as produced, as soon as they are scheduled. A sequence whose whole output
// is scheduled keeps its seat and blocks until its last token is processed.
//
// # Preemption
//
// A preempted sequence loses its blocks (they keep their keys) and all computed tokens. It goes to the head of the
// queue, behind requests that an iteration has passed over, or to its place in an ordered queue. It keeps its output;
// tokens in flight are delivered. When it is admitted again, prompt and output so far are prefilled together. If its
// whole output was already in flight, it completes from the queue. PreemptToTail sends it to the tail of the queue, in
// an ordered one behind its equals that were there before.
//
// A walk that ends by preempting its own sequence may leave an empty iteration. When nothing is in flight the engine
// then composes again at the same instant until the iteration is not empty; otherwise it waits for the next boundary.
//
// # Prefix cache
//
// A full block enters the cache under its key when its last token is scheduled or, if that token was still in flight
// then, when it is delivered. It does not wait for the iteration: the next request of the same iteration can hit it. A
// sequence that is preempted later in the same iteration leaves its keys in the cache. A key can name several blocks;
// the first one entered is hit. An admission takes the longest run of leading blocks that have keys in the cache, but
// computes at least one token.
//
// A block without references is free, and keeps its key until it is allocated again. Blocks are allocated from the
// front of the free list. A sequence frees its blocks from the last to the first: those with a key go to the back of
// the list one after the other; those without go to its front, so that the last block of the sequence comes first.
//
// An admission also notes which tokens the cache has lost: those of the blocks after the run that it finds, as long as
// each block was evicted before or is in the cache but unreachable. Those of them that are then computed for the first
// time count as lost. With a radix cache these are the pages after the match, as long as each was in a leaf that was
// evicted.
//
// A radix cache evicts leaves when an iteration is composed, after all of its matches and locks, as SGLang does: first
// for the prompt tokens of the iteration, with a page more for each prompt if a page has several tokens; then for the
// pages that decoding sequences begin, if it has no prompts and a page has several tokens; then for one page of each
// decoding sequence. If fewer are available than that, it evicts leaves until it has freed as many as that, not as many
// as are missing. What is still missing then is evicted leaf by leaf. A step of all decoding sequences for which there
// is no room evicts all that can be evicted. MakeRoom evicts as many tokens as it is given if fewer are available.
//
// # GPU time
//
// The time of an iteration, without copies to and from host memory and host time, is shared out among the tokens that
// it computes, padding included, in whole femtoseconds. The remainder is added to the next iteration if that computes
// as many tokens, and dropped otherwise. Requests are charged for their tokens when an iteration is launched, even if
// their client leaves later.
//
// # Clients
//
// A client leaves at Arrival + Timeout, + Cancel or + FirstTimeout, whichever is first, if the last token of its output
// (for FirstTimeout the first token) has not come by then, that is, if the iteration that produces it has not been
// processed at a boundary before that instant. Of equal limits Timeout counts before Cancel, and Cancel before
// FirstTimeout.
//
// The engine acts on a departure at its next boundary. A request that is still in the front end, or just leaves it,
// ends at that instant without reaching the queue. A silent client sends no abort: its request continues until its last
// token, or until it is rejected. The record gives the ending from the client's side: a request whose client left is
// timed out or cancelled, served or not.
//
// The source is told of an ending once, before the record of the request is reported.
//
// Clients' limits ignore the time that the front end takes for the output. A request whose client left may have a
// FirstToken and, if it was served all the same, a LastToken. Its client has seen the first one if that came in time,
// and never sees the last.
//
// # Delivery
//
// The front end of an engine sends the output: one server with a queue. When an iteration ends, each sequence that
// produces tokens joins the queue, but for one that is in it and whose turn has not begun before this instant: its
// tokens are sent with those that wait, as one chunk. A turn takes StreamPerSequence, and the chunk leaves at its end.
// Sequences whose client has left or whose output has ended take their turns too. With a StreamInterval above 1 only
// the first token of a request joins, each StreamInterval-th after the last one that joined, and the last one; the
// others are sent with the next one that joins.
//
// If the front end is idle when the iteration ends, sequences join in batch order, so that the k-th is sent
// k·StreamPerSequence after that end. Otherwise they join in the order in which their last chunks leave, and then those
// without a chunk in batch order: the front end serves the same sequences round robin.
//
// A gap is the time between two chunks of a request. Gaps count in the iteration whose output joins the queue. A token
// after the end of an output has none.
//
// # Network
//
// A request takes NetworkIn to the front end. Tokens and rejections take NetworkOut to the client. A request that is
// too long is rejected when it reaches the front end. A token is in time if it was processed at a boundary before the
// limit less NetworkOut, though not before Arrival. At that instant it is certain that the client leaves at the limit
// and gets nothing that is processed later; the source is told then. The abort reaches the server NetworkIn after the
// limit. What the server does until then is wasted.
package simtest
