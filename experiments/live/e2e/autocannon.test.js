// The load tester autocannon against clifftop serve: a script with thresholds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import autocannon from 'autocannon';

test('400 completions over 16 connections', async () => {
  const r = await autocannon({
    url: process.env.CLIFFTOP_SERVER + '/v1/completions',
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ' + process.env.CLIFFTOP_API_KEY },
    body: JSON.stringify({ model: 'llama-3.1-8b', prompt: 'Hello', max_tokens: 10, ignore_eos: true }),
    connections: 16,
    amount: 400,
    timeout: 20,
    verifyBody: (body) => JSON.parse(body).usage.completion_tokens === 10,
  });
  assert.equal(r['2xx'], 400);
  assert.deepEqual([r.errors, r.timeouts, r.non2xx, r.mismatches], [0, 0, 0, 0]);
  // An H100 needs about 50 ms for ten tokens of this model. The upper threshold leaves room for a busy machine.
  assert.ok(r.latency.p50 > 30, `p50 is ${r.latency.p50} ms`);
  assert.ok(r.latency.p99 < 2000, `p99 is ${r.latency.p99} ms`);
});
