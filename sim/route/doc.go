// Package route has the routers: rules that choose the replica which serves a request, one file each.
//
// A router sees its endpoints through a [View]. Metrics of replicas are those of the last scrape. What a router counts
// itself, the requests that it has sent and that have not ended, is exact, but does not include other routers'
// requests: a fleet may have several routers, which share nothing.
//
// Their fields are their parameters. Where the zero value is not the customary one, a function New… returns that. Some
// have an [Identity], which distinguishes the routers of one fleet, a method Validate, and [Requirements], which
// [Check] compares with the configuration.
//
//	name            router           new               chooses by
//	round-robin     RoundRobin       zero              turns
//	random          Random           zero              a random number
//	power-of-two    PowerOfTwo       zero              the less loaded of two random endpoints
//	least-requests  LeastRequests    zero              own outstanding requests
//	least-tokens    LeastTokens      zero              own outstanding tokens
//	least-queue     LeastQueue       zero              scraped queues
//	least-kv        LeastKV          zero              scraped usage of the KV cache
//	session         Session          zero              a consistent hash of the session or user
//	bounded-hash    BoundedHash      NewBoundedHash    the same, or that of a prefix, with bounded loads
//	prefix          Prefix           NewPrefix         the longest prefix of the prompt that was sent before
//	sglang          SGLang           NewSGLang         the same, unless loads are not balanced
//	kv-aware        KVAware          NewKVAware        the longest prefix in the caches, else sessions
//	vllm-dp         VLLMDP           zero              4·waiting + running, as vLLM's data-parallel front ends
//	llm-d           LLMD             NewLLMD           filters, weighted scorers, a picker
//	dynamo          Dynamo           NewDynamo         blocks to prefill and active blocks
package route
