// The load tester k6 against clifftop serve: a closed loop of 16 users, with thresholds.
import http from 'k6/http';
import { check } from 'k6';

export const options = {
  scenarios: { users: { executor: 'shared-iterations', vus: 16, iterations: 400, maxDuration: '60s' } },
  thresholds: {
    checks: ['rate==1'],
    http_req_failed: ['rate==0'],
    // An H100 needs about 50 ms for ten tokens of this model. The upper threshold leaves room for a busy machine.
    http_req_duration: ['p(50)>30', 'p(99)<2000'],
  },
};

const params = {
  headers: { 'Content-Type': 'application/json', Authorization: 'Bearer ' + __ENV.CLIFFTOP_API_KEY },
};
const body = JSON.stringify({ model: 'llama-3.1-8b', prompt: 'Hello', max_tokens: 10, ignore_eos: true });

export default function () {
  const r = http.post(__ENV.CLIFFTOP_SERVER + '/v1/completions', body, params);
  check(r, {
    'status is 200': (r) => r.status === 200,
    'ten tokens': (r) => r.json('usage.completion_tokens') === 10,
  });
}
