// OpenAI's client for Node.js against clifftop serve. CLIFFTOP_SERVER is its address, CLIFFTOP_API_KEY its key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';

const server = process.env.CLIFFTOP_SERVER;
const model = 'llama-3.1-8b';
const options = { baseURL: server + '/v1', apiKey: process.env.CLIFFTOP_API_KEY, maxRetries: 0 };
const client = new OpenAI(options);
const messages = [
  { role: 'system', content: 'You are brief.' },
  { role: 'user', content: 'Why is the sky blue?' },
];

// gauge returns the sum of a metric over its labels.
async function gauge(name, label = '') {
  const text = await (await fetch(server + '/metrics')).text();
  const values = text.split('\n').filter((l) => l.startsWith(name + '{') && l.includes(label))
    .map((l) => Number(l.slice(l.lastIndexOf(' '))));
  assert.ok(values.length > 0, `no metric ${name} with ${label}`);
  return values.reduce((a, b) => a + b, 0);
}

// collect reads a stream to its end.
async function collect(stream) {
  const chunks = [];
  for await (const c of stream) chunks.push(c);
  return chunks;
}

test('models', async () => {
  const list = await client.models.list();
  assert.ok(list.data.some((m) => m.id === model && m.object === 'model'), JSON.stringify(list.data));
});

test('completion', async () => {
  const r = await client.completions.create({ model, prompt: 'The sky is', max_tokens: 12, ignore_eos: true });
  assert.equal(r.object, 'text_completion');
  assert.equal(r.choices[0].finish_reason, 'length');
  assert.ok(r.choices[0].text.length > 0);
  assert.equal(r.usage.completion_tokens, 12);
  assert.equal(r.usage.total_tokens, r.usage.prompt_tokens + 12);
});

test('completion of token IDs, two choices', async () => {
  const r = await client.completions.create({ model, prompt: [11, 22, 33, 44, 55], n: 2, max_tokens: 3, ignore_eos: true });
  assert.deepEqual(r.choices.map((c) => c.index).sort(), [0, 1]);
  assert.equal(r.usage.prompt_tokens, 5);
  assert.equal(r.usage.completion_tokens, 6);
});

test('streamed completion', async () => {
  const chunks = await collect(await client.completions.create({
    model, prompt: 'The sky is', max_tokens: 20, ignore_eos: true, stream: true, stream_options: { include_usage: true },
  }));
  const last = chunks.pop();
  assert.deepEqual(last.choices, []);
  assert.equal(last.usage.completion_tokens, 20);
  assert.ok(chunks.length > 5, `${chunks.length} chunks`);
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'length');
  assert.ok(chunks.every((c) => c.id === last.id && c.choices[0].text.length > 0));
});

test('chat', async () => {
  const { data: r, response } = await client.chat.completions.create({ model, messages, max_completion_tokens: 500 })
    .withResponse();
  assert.equal(response.status, 200);
  assert.equal(r.object, 'chat.completion');
  assert.equal(r.choices[0].message.role, 'assistant');
  assert.ok(r.choices[0].message.content.length > 0);
  assert.equal(r.choices[0].finish_reason, r.usage.completion_tokens < 500 ? 'stop' : 'length');
});

test('streamed chat', async () => {
  const stream = client.chat.completions.stream({
    model, messages, max_completion_tokens: 20, ignore_eos: true, stream_options: { include_usage: true },
  });
  let text = '';
  stream.on('content', (delta) => { text += delta; });
  const r = await stream.finalChatCompletion();
  assert.equal(r.choices[0].message.role, 'assistant');
  assert.equal(r.choices[0].message.content, text);
  assert.ok(text.length > 0);
  assert.equal(r.usage.completion_tokens, 20);
});

test('errors', async () => {
  const ask = (more, c = client) => c.chat.completions.create({ model, messages, max_tokens: 5, ...more });
  await assert.rejects(ask({ model: 'gpt-9' }), (e) => e instanceof OpenAI.NotFoundError && /gpt-9/.test(e.message));
  await assert.rejects(ask({}, new OpenAI({ ...options, apiKey: 'wrong' })), OpenAI.AuthenticationError);
  await assert.rejects(ask({ messages: [{ role: 'user', content: 'word '.repeat(9000) }] }),
    (e) => e instanceof OpenAI.BadRequestError && /4096|context/.test(e.message));
  await assert.rejects(ask({ max_tokens: -1 }), OpenAI.BadRequestError);
  await assert.rejects(client.completions.create({ model, prompt: 'x', max_tokens: 'many', stream: true }),
    OpenAI.BadRequestError);
});

test('a client that leaves aborts its request', async () => {
  const before = await gauge('vllm:request_success_total', 'finished_reason="abort"');
  const stream = await client.completions.create({ model, prompt: 'x', max_tokens: 4000, ignore_eos: true, stream: true });
  let n = 0;
  for await (const c of stream) {
    assert.ok(c.choices[0].text.length > 0);
    if (++n === 3) break; // the client closes the connection
  }
  for (let k = 0; k < 100 && await gauge('vllm:num_requests_running') > 0; k++) {
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.equal(await gauge('vllm:num_requests_running'), 0);
  assert.equal(await gauge('vllm:request_success_total', 'finished_reason="abort"'), before + 1);
});
