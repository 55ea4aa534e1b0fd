// Package api serves a scenario over HTTP, with the endpoints of vLLM and SGLang: OpenAI's completions and chat
// completions, the list of models, tokenization, SGLang's native generation, and the health of the server.
//
// [New] makes the server of a [clifftop/experiments/live.Server], [Listen] opens the ports, and [Server.Serve] serves
// them until its context is done. Chunks of output leave at their simulated instants. The text is filler.
//
// The shapes of requests and responses follow vllm/entrypoints/openai (vLLM, November 2025 and later) and
// sglang/srt/managers/tokenizer_manager.py. testdata/clients lists what load generators send and read.
package api
