// Package record is a transparent proxy in front of an OpenAI-compatible server that writes a Clifftop trace of the
// requests: arrivals, lengths, first tokens, gaps and outcomes, and the prefixes that prompts share, as salted hashes.
// It stores no text, no keys and no addresses.
//
// A [Recorder] is the handler of the proxy. It forwards each request at once, notes when the chunks of the response
// pass, and leaves the rest to one goroutine, which tokenises the prompts and writes rows in order of arrival.
package record
