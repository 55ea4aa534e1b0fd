// Package kvevents publishes the KV events of a served scenario over ZeroMQ as vLLM does, so that routers that know
// what each engine has cached (llm-d's precise prefix scorer, Dynamo's KV router) can be tried against it.
//
// A [Publisher] is an observer of the simulation. Each replica has a PUB socket that sends messages of three frames:
// the topic, a sequence number of 8 bytes in big-endian order, and a batch in MessagePack, [time, events, rank]. With a
// replay endpoint it has a ROUTER socket too, which repeats the batches from a sequence number on and ends with the
// number -1 and an empty payload. Events are BlockStored with the hashes, the parent's hash and the token IDs of
// consecutive blocks, BlockRemoved with one hash, and AllBlocksCleared when the replica stops. In the format "map" an
// event is a map with its type under "type", as in vLLM since June 2026 (pull request 42892); in "array" its tag and
// its fields in order, as in vLLM before and in SGLang. The sources are vllm/distributed/kv_events.py and
// vllm/v1/core/block_pool.py.
//
// The hashes are the simulator's keys of blocks. They are 64-bit integers, as vLLM sends by default. Routers do not
// compute them: they use them to identify the parent and blocks that are removed, and compute their own hashes from the
// token IDs. The publisher therefore knows the tokens of every request until it has ended: [Publisher.Note] gives it
// the prompt, and [Options.Output] the output.
//
// A batch is sent at the instant at which the step ends in which its blocks were stored, as vLLM's scheduler does.
//
// Differences from vLLM: a copy of a block that the cache has already is not reported, nor its removal; only the first
// group of full attention of a hybrid model is; blocks in tiers (offloading) are not; a batch that finds the queue full
// is dropped and leaves a gap in the sequence numbers, where vLLM's scheduler waits; and a subscriber that does not
// read loses messages without delay for the others.
package kvevents
