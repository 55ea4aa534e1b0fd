package api

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// divided has two prefill and two decode replicas. A token has 128 KiB of KV, so 4,000 tokens take 524 ms over links of
// 1 GB/s, and 5 ms over links of 100 GB/s.
const divided = "model: llama-3.1-8b\ngpu: h100\npools: [{name: p, role: prefill, replicas: 2}, " +
	"{name: d, role: decode, replicas: 2}]\nworkload: {output: {distribution: fixed, value: 30}}\n"

// serveEach serves each of four replicas at a port of its own.
func serveEach(t *testing.T, text string, speed float64) (*site, [4]*site) {
	t.Helper()
	x := newServer(t, text, speed, nil)
	var ports []Port
	var all [4]*site
	for i := range all {
		p, err := Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p[0].Replica = int32(i) + 1
		ports = append(ports, p[0])
		all[i] = &site{url: "http://" + p[0].Addr().String()}
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- x.Serve(ctx, ports) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return x, all
}

// askFor sends a request with kv_transfer_params and a change of the body.
func askFor(t *testing.T, at *site, path string, transfer any, more object) answer {
	t.Helper()
	long := strings.Repeat("word ", 4000)
	body := object{"model": "llama-3.1-8b", "kv_transfer_params": transfer}
	if strings.Contains(path, "chat") {
		body["messages"] = []object{{"role": "user", "content": long}}
	} else {
		body["prompt"] = long
	}
	maps.Copy(body, more)
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return at.do(t, "POST", path, string(b))
}

// remoteDecode is what proxies send to a prefill replica.
var remoteDecode = object{"do_remote_decode": true, "do_remote_prefill": false, "remote_engine_id": nil,
	"remote_block_ids": nil, "remote_host": nil, "remote_port": nil}

// prefill computes the prompt and returns kv_transfer_params of the response.
func prefill(t *testing.T, at *site, path string) object {
	t.Helper()
	a := askFor(t, at, path, remoteDecode, object{"max_tokens": 1, "stream": false})
	var v struct {
		KV    object `json:"kv_transfer_params"`
		Usage object
	}
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.status != 200 || v.Usage["completion_tokens"] != 1.0 {
		t.Fatalf("%v: %d %.300s", err, a.status, a.body)
	}
	return v.KV
}

// TestTransfer plays a proxy of prefill and decode.
func TestTransfer(t *testing.T) {
	for _, link := range []struct {
		speed    string // GB/s
		from, to clock.Duration
	}{{"1", 524 * clock.Millisecond, 700 * clock.Millisecond}, {"100", 5 * clock.Millisecond, 60 * clock.Millisecond}} {
		x, each := serveEach(t, divided+"disaggregation: {link_gb_per_s: "+link.speed+"}", 10)
		for _, path := range []string{"/v1/completions", "/v1/chat/completions"} {
			kv := prefill(t, each[1], path)
			first := x.record(t)
			blocks, _ := kv["remote_block_ids"].([]any)
			delete(kv, "remote_block_ids")
			host, port, _ := strings.Cut(strings.TrimPrefix(each[1].url, "http://"), ":")
			want := object{"do_remote_prefill": true, "do_remote_decode": false, "remote_engine_id": "p-1",
				"remote_request_id": read(t, `"`+string('0'+byte(first.Request.ID))+`"`), "remote_host": host,
				"remote_port": read(t, port), "tp_size": 1.0}
			if !maps.Equal(kv, want) || len(blocks) != int(first.Request.InputTokens+15)/16 || first.Replica != 1 {
				t.Fatalf("%s: %v and %d blocks (want %v) of replica %d", path, kv, len(blocks), want, first.Replica)
			}
			kv["remote_block_ids"] = blocks
			began := time.Now()
			a := askFor(t, each[3], path, kv, object{"max_tokens": 25, "ignore_eos": true})
			wall := time.Since(began)
			v := read(t, a.body)
			rec := x.record(t)
			ttft := rec.ClientFirst.Sub(rec.Request.Arrival)
			if got := object(v.(object)["usage"].(object)); got["completion_tokens"] != 25.0 ||
				got["prompt_tokens"] != float64(rec.Request.InputTokens) || v.(object)["kv_transfer_params"] != nil ||
				at(t, got, "prompt_tokens_details.cached_tokens") != float64(rec.Request.InputTokens-1) {
				t.Errorf("%s: %.300s", path, a.body)
			}
			if rec.Replica != 3 || rec.PulledTokens < 3999 || ttft < link.from || ttft > link.to ||
				wall < time.Duration(link.from/clock.Nanosecond)/10 {
				t.Errorf("%s GB/s, %s: TTFT %v, %d tokens pulled, replica %d, %v", link.speed, path, ttft, rec.PulledTokens,
					rec.Replica, wall)
			}
		}
	}
}

// TestTransferOfNothing sends KV parameters that no KV belongs to. vLLM computes the prompt if a field is missing, and
// otherwise as kv_load_failure_policy says.
func TestTransferOfNothing(t *testing.T) {
	load := func(engine, request, blocks any) object {
		return object{"do_remote_prefill": true, "remote_engine_id": engine, "remote_request_id": request,
			"remote_block_ids": blocks, "remote_host": "a", "remote_port": 1}
	}
	blocks := []int{0}
	for name, k := range map[string]struct {
		transfer any
		fails    bool // with the policy fail
	}{
		"null":            {nil, false},
		"empty":           {object{}, false},
		"nothing to do":   {object{"do_remote_prefill": false, "do_remote_decode": false}, false},
		"no engine":       {load(nil, "0", blocks), false},
		"no request":      {load("p-0", nil, blocks), false},
		"no blocks":       {load("p-0", "0", []int{}), false},
		"unknown engine":  {load("p-7", "0", blocks), true},
		"decode engine":   {load("d-0", "0", blocks), true},
		"unknown request": {load("p-0", "cmpl-1", blocks), true},
		"later request":   {load("p-1", "999999999", blocks), true},
		"negative":        {load("p-1", "-1", blocks), true},
	} {
		for _, policy := range []string{"recompute", "fail"} {
			t.Run(name+"/"+policy, func(t *testing.T) {
				t.Parallel()
				x, each := serveEach(t, divided+"disaggregation: {kv_load_failure_policy: "+policy+"}", 100)
				a := askFor(t, each[2], "/v1/completions", k.transfer, object{"max_tokens": 5, "min_tokens": 5})
				if k.fails && policy == "fail" {
					if isError(t, a); a.status != 500 || !strings.Contains(a.body, "kv_load_failure_policy is fail") {
						t.Errorf("%d %s", a.status, a.body)
					}
					return
				}
				if v := read(t, a.body); at(t, v, "usage.completion_tokens") != 5.0 {
					t.Errorf("%d %.300s", a.status, a.body)
				}
				if rec := x.record(t); rec.PulledTokens != 0 || rec.Outcome != event.Completed || rec.GPU.Prefill == 0 {
					t.Errorf("%d tokens pulled, %v, prefill %d", rec.PulledTokens, rec.Outcome, rec.GPU.Prefill)
				}
			})
		}
	}
}

// TestRoles sends requests to replicas that cannot serve them, and to those that can.
func TestRoles(t *testing.T) {
	_, each := serveEach(t, divided, 100)
	kv := prefill(t, each[0], "/v1/completions")
	for i, k := range []struct {
		at       int
		transfer any
		status   int
		text     string
	}{
		{2, remoteDecode, 400, "do_remote_decode: the replica d-0 decodes and keeps no KV"},
		{1, kv, 400, "do_remote_prefill: the replica p-1 prefills and loads no KV"},
		{0, "p-0", 400, "kv_transfer_params: found string (want an object)"},
		{0, object{"do_remote_decode": 1}, 400, "kv_transfer_params.do_remote_decode: found number (want true or false)"},
		{0, nil, 200, `"kv_transfer_params":null`},
	} {
		a := askFor(t, each[k.at], "/v1/completions", k.transfer, object{"max_tokens": 3, "min_tokens": 3})
		if a.status != k.status || !strings.Contains(a.body, k.text) {
			t.Errorf("%d: %d %s", i, a.status, a.body)
		}
	}
	for i, want := range []string{"prefill", "prefill", "decode", "decode"} {
		if v := read(t, each[i].do(t, "GET", "/server_info", "").body); at(t, v, "disaggregation_mode") != want {
			t.Errorf("port %d: %v", i, v)
		}
	}
	one := serve(t, divided, 100, nil) // the scenario's routers send the KV
	a := askFor(t, one, "/v1/completions", remoteDecode, object{"max_tokens": 3, "ignore_eos": true})
	v := read(t, a.body)
	if at(t, v, "usage.completion_tokens") != 3.0 || at(t, v, "kv_transfer_params") != nil {
		t.Errorf("%d %.300s", a.status, a.body)
	}
	if rec := one.record(t); !rec.HandedOver || rec.PulledTokens < 3999 {
		t.Errorf("handed over %v, %d tokens pulled", rec.HandedOver, rec.PulledTokens)
	}
	if v := read(t, one.do(t, "GET", "/server_info", "").body); at(t, v, "disaggregation_mode") != "null" {
		t.Errorf("%v", v)
	}
}
