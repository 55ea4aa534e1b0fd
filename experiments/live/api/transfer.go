package api

import (
	"cmp"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strconv"

	"clifftop/experiments/scenario"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// transferParams is the field kv_transfer_params of a request, as vLLM's NixlConnector reads it: what happens to the KV
// of the prompt. A proxy sends the prompt to a prefill replica with do_remote_decode, and gives what the response has
// in the field to a decode replica.
type transferParams struct {
	Keep    *bool           `json:"do_remote_decode"`
	Load    *bool           `json:"do_remote_prefill"`
	Engine  *string         `json:"remote_engine_id"`
	Request *string         `json:"remote_request_id"`
	Blocks  json.RawMessage `json:"remote_block_ids"`
}

// keeps reports whether the KV of the prompt is kept for a decode replica.
func (t *transferParams) keeps() bool { return t != nil && is(t.Keep) }

// loads reports whether the KV of the prompt is loaded. vLLM computes the prompt if a field is missing.
func (t *transferParams) loads() bool {
	blocks := ""
	if t != nil {
		blocks = string(t.Blocks)
	}
	return t != nil && is(t.Load) && !is(t.Keep) && t.Engine != nil && t.Request != nil && given(t.Blocks) &&
		blocks != "[]"
}

// peers are the replicas of a scenario with prefill and decode replicas. Without these it is empty.
type peers struct {
	names     []string // of the replicas; a name is the engine's ID
	ranks     []int    // tensor-parallel size of each
	prefills  int32    // the first ones
	blockSize int
	fails     bool // requests whose KV cannot be loaded
}

func newPeers(u *scenario.Setup) (p peers) {
	d := u.StandingFleet(false).Disaggregation
	if d == nil {
		return p
	}
	p.prefills, p.blockSize = int32(d.Prefills), u.Pools[0].Scenario.Engine.BlockSize
	p.fails = u.Scenario.Disaggregation.KVLoadFailurePolicy == "fail"
	for i := range u.Pools {
		for k := range u.Pools[i].Engines() {
			p.names = append(p.names, cmp.Or(u.Pools[i].Name, "pool")+"-"+strconv.Itoa(k))
			p.ranks = append(p.ranks, u.Pools[i].Scenario.Deployment.TensorParallelSize)
		}
	}
	return p
}

// role returns what the replica of a port does: prefill, decode, or both, also at the port of the routers.
func (p *peers) role(replica int32) string {
	switch {
	case replica == 0 || len(p.names) == 0:
		return "both"
	case replica <= p.prefills:
		return "prefill"
	}
	return "decode"
}

// find returns the number of a prefill replica by its name, from 1, or 0.
func (p *peers) find(name string) int32 { return 1 + int32(slices.Index(p.names[:p.prefills], name)) }

// errNoKV is the failure of a request whose KV could not be loaded.
var errNoKV = &failure{status: http.StatusInternalServerError,
	message: "the KV of the prompt could not be loaded, and disaggregation.kv_load_failure_policy is fail"}

// check reports a request whose replica cannot do what it asks for.
func (p *peers) check(t *transferParams, replica int32) error {
	switch role := p.role(replica); {
	case t.keeps() && role == "decode":
		return bad("kv_transfer_params", "do_remote_decode: the replica %s decodes and keeps no KV (want the port of "+
			"a prefill replica)", p.names[replica-1])
	case t.loads() && role == "prefill":
		return bad("kv_transfer_params", "do_remote_prefill: the replica %s prefills and loads no KV (want the port "+
			"of a decode replica)", p.names[replica-1])
	case t.loads() && role == "decode" && p.fails && p.find(*t.Engine) == 0:
		return errNoKV
	}
	return nil
}

// transfer returns the KV transfer of a prompt; number is the number of the request. The prompt is computed if the
// engine is unknown. KV of an unknown request does not exist; the transfer then names the request itself.
func (p *peers) transfer(t *transferParams, replica int32, number int64) *workload.Transfer {
	role := p.role(replica)
	if t.keeps() && role == "prefill" {
		return &workload.Transfer{Keeps: true}
	}
	if !t.loads() || role != "decode" {
		return nil
	}
	from := p.find(*t.Engine)
	if from == 0 {
		return nil
	}
	of, err := strconv.ParseInt(*t.Request, 10, 64)
	if err != nil || of < 0 || of > number {
		of = number
	}
	return &workload.Transfer{From: from, Of: of}
}

// lost reports whether a request that has failed did so because its KV could not be loaded.
func (c *call) lost(rec *event.Record) bool {
	t := rec.Request.Transfer
	return c.server.peers.fails && t != nil && t.From > 0 && rec.FirstToken == clock.Never &&
		c.server.replicas.Ready(c.replica)
}

// kept appends the field kv_transfer_params of a response: where the KV of the first prompt is kept, or null.
func (c *call) kept(b []byte) []byte {
	p, x := &c.server.peers, &c.choices[0]
	if !c.p.transfer.keeps() || p.role(c.replica) != "prefill" {
		return append(b, "null"...)
	}
	b = append(b, `{"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[`...)
	for i := 0; i*p.blockSize < len(x.prompt.Tokens); i++ {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(i), 10)
	}
	host, port := "", 0
	if a, ok := c.local.(*net.TCPAddr); ok {
		host, port = a.IP.String(), a.Port
	}
	b = appendQuoted(append(b, `],"remote_engine_id":`...), p.names[c.replica-1])
	b = appendQuoted(append(b, `,"remote_request_id":`...), strconv.FormatInt(x.number, 10))
	b = appendQuoted(append(b, `,"remote_host":`...), host)
	b = strconv.AppendInt(append(b, `,"remote_port":`...), int64(port), 10)
	b = strconv.AppendInt(append(b, `,"tp_size":`...), int64(p.ranks[c.replica-1]), 10)
	return append(b, '}')
}
