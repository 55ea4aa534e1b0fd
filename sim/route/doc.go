// Package route holds routers: rules that choose the replica which serves a request, one file each.
//
// A router sees its endpoints through a [View], as old as the fleet's metrics are: what a replica says of itself
// was true at the last scrape, while what a router counts itself, the requests that it has sent and that have not
// ended, is always exact, and always its own alone. A fleet may have several routers, which do not know of each other.
//
// Their fields are their parameters. Where the zero value is not the customary one, a function New… makes that. Some
// have an [Identity], which tells the routers of one fleet apart, a method Validate, and [Requirements], which [Check]
// compares with what there is.
//
//	name            router           new               goes by
//	round-robin     RoundRobin       zero              turns
//	random          Random           zero              chance
//	power-of-two    PowerOfTwo       zero              the less loaded of two drawn by chance
//	least-requests  LeastRequests    zero              own outstanding requests
//	least-tokens    LeastTokens      zero              own outstanding tokens
//	least-queue     LeastQueue       zero              scraped queues
//	least-kv        LeastKV          zero              scraped use of the KV cache
//	session         Session          zero              a consistent hash of the session or user
//	bounded-hash    BoundedHash      NewBoundedHash    the same within a bound of load, or of a prefix
//	prefix          Prefix           NewPrefix         the longest prefix of the prompt sent before, remembered for ever or bounded
//	sglang          SGLang           NewSGLang         the same, unless loads are not balanced
//	kv-aware        KVAware          NewKVAware        the longest prefix in the caches, else sessions
//	vllm-dp         VLLMDP           zero              4·waiting + running, as vLLM's data-parallel front ends
//	llm-d           LLMD             NewLLMD           filters, weighted scorers, a picker
//	dynamo          Dynamo           NewDynamo         blocks to prefill and blocks active
package route
