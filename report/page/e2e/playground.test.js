// The playground in a browser: CLIFFTOP_PLAY is the address at which clifftop play serves it, and CLIFFTOP the program, which
// must give the same numbers.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, open, shot, violations } from "./browser.js";

const address = process.env.CLIFFTOP_PLAY, program = process.env.CLIFFTOP;
const slow = { timeout: 120_000 };
let browser;

before(async () => { browser = await launch(); });
after(async () => { await browser.close(); });

const point = (page) => page.waitForFunction(() => document.querySelector("#tiles div") && !document.getElementById("results").classList.contains("stale"), null, slow);
const curve = (page) => page.waitForFunction(() => document.getElementById("status").textContent.includes("longer runs"), null, slow);
const tile = (page, name) => page.locator("#tiles div", { hasText: name }).locator("strong").innerText();
const title = (page, id) => page.locator(`#${id} .chart-title`).innerText();

// played opens the playground, and asserts at the end that the page reported no error.
async function played(hash, options, play) {
  const page = await open(browser, address + hash, options);
  try {
    await play(page);
    assert.deepEqual(page.complaints, []);
    assert.deepEqual(page.strangers, []);
  } finally {
    await page.context().close();
  }
}

test("the page opens, draws its curve, and shuts nobody out", () => played("", {}, async (page) => {
  await curve(page);
  assert.match(await title(page, "throughput"), /knee is at .* requests\/s/);
  assert.match(await title(page, "latency"), /at the knee/);
  assert.match(await title(page, "pool"), /full on average/);
  assert.deepEqual(await violations(page), []);
  await shot(page, "play-1600-light");
}));

test("a slider moves the curve, and the address", () => played("", {}, async (page) => {
  await curve(page);
  const was = await title(page, "throughput"), tokens = await tile(page, "Output tokens/s");
  await page.locator("#control-seqs").focus();
  for (let k = 0; k < 3; k++) await page.keyboard.press("PageDown"); // a tenth each
  await page.waitForFunction((was) => document.querySelector("#throughput .chart-title").textContent !== was && document.getElementById("status").textContent.includes("longer runs"), was, slow);
  assert.match(await title(page, "throughput"), /all seats are in use/);
  assert.match(await page.evaluate(() => location.hash), /^#engine\.max_num_seqs=\d+$/);
  await page.locator("#control-rate").focus();
  await page.keyboard.press("End"); // 500 a second
  await page.waitForFunction((tokens) => document.querySelector("#tiles strong").textContent !== tokens, tokens, slow);
  assert.match(await page.locator("#warnings").innerText(), /\w/);
}));

test("a fleet shows its replicas, and its router can be chosen", () => played("#deployment.replicas=4&rate=40", { width: 1280 }, async (page) => {
  await point(page);
  assert.match(await title(page, "fleet"), /busiest replica gets 1 times the average/); // in turns
  await page.selectOption("#control-router", "random");
  await page.waitForFunction(() => !/gets 1 times/.test(document.querySelector("#fleet .chart-title").textContent), null, slow);
  assert.match(await page.locator("#yaml").textContent(), /router: random/);
  await curve(page);
  assert.deepEqual(await violations(page), []);
  await shot(page, "fleet");
  await page.locator('[aria-label="Replicas, exact value"]').fill("1");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("fleet").hidden, null, slow);
}));

test("a replica crashes, and an autoscaler follows the load", () => played("#deployment.replicas=3&rate=20", { width: 1280 }, async (page) => {
  await point(page);
  assert.ok(await page.locator("#lives").isHidden());
  assert.ok(await page.locator("#control-cold").isHidden());
  await page.locator('[aria-label="A replica crashes after, exact value"]').fill("30");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => !document.getElementById("lives").hidden, null, slow);
  assert.match(await title(page, "lives"), /2\.\d+ are ready on average, 3 are paid for; \d+ requests fail/);
  assert.equal(await page.locator('[aria-label="It restarts after, exact value"]').inputValue(), "20");
  assert.match(await page.locator("#yaml").textContent(), /kind: crash, at: 30s, replica: 0, for: 20s/);
  await page.waitForFunction(() => location.hash.includes("lifecycle"), null, slow); // a quarter of a second after the change
  assert.match(decodeURIComponent(await page.evaluate(() => location.hash)).replaceAll("+", " "), /lifecycle=\{cold_start: 10s, probe: 1s, failures: \[/);
  await page.locator('[aria-label="It restarts after, exact value"]').fill("");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => !/for: 20s/.test(document.getElementById("yaml").textContent), null, slow);
  assert.doesNotMatch(await page.locator("#yaml").textContent(), /for:/);
  await page.selectOption("#control-scaler", "keda");
  await page.waitForFunction(() => /policy: keda/.test(document.getElementById("yaml").textContent), null, slow);
  assert.ok(await page.locator("#control-replicas").isHidden()); // their number is the autoscaler's
  await page.locator('[aria-label="Target: requests per replica, waiting and running, exact value"]').fill("10");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /target: 10/.test(document.getElementById("yaml").textContent), null, slow);
  assert.match(await page.locator("#yaml").textContent(), /kind: crash/); // what another control has set is kept
  await page.waitForFunction(() => document.getElementById("status").textContent.includes("the curve took"), null, slow);
  assert.match(await title(page, "throughput"), /\w/);
  assert.deepEqual(await violations(page), []);
  await shot(page, "lives");
  await page.selectOption("#control-scaler", "none");
  await page.locator('[aria-label="A replica crashes after, exact value"]').fill("never");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("lives").hidden, null, slow);
  await page.waitForFunction(() => !location.hash.includes("lifecycle"), null, slow);
}));

test("a lesson loads its scenario, runs, and its claims hold", () => played("", { width: 1280 }, async (page) => {
  await point(page);
  await page.selectOption("#lesson", "9");
  await page.waitForSelector("#tour h2");
  assert.match(await page.locator("#tour h2").innerText(), /Little/);
  await page.click("#hold");
  await page.waitForSelector("#lesson-results table", slow);
  const checked = await page.locator("#lesson-results details summary").last().innerText();
  const [, holds, all] = checked.match(/(\d+) of (\d+) claims hold/);
  assert.equal(holds, all);
  assert.ok(await page.locator("#lesson-results .chart").count() > 0);
  assert.deepEqual(await violations(page), []);
  await curve(page);
  await shot(page, "lesson-9");
}));

test("a shared address restores what was set, and a lesson's step", () => played("#lesson=8&step=4&users=120", { width: 800, height: 1000 }, async (page) => {
  await point(page);
  assert.equal(await page.locator("#lesson").inputValue(), "8");
  assert.equal(await page.locator('[aria-label="Users, exact value"]').inputValue(), "120");
  assert.equal(await page.locator("#control-told").inputValue(), "false");
  assert.match(await page.locator("#yaml").textContent(), /arrivals: \{process: closed, users: 120, ramp: 5s\}/);
  await curve(page);
  await shot(page, "lesson-8-800");
}));

for (const hash of ["", "#rate=12&engine.policy=sglang&run.requests=400", "#users=60&workload.arrivals.think_time=5s&clients.timeout=20s&clients.retries=2",
  "#model=llama-3.1-70b&gpu=h200-sxm&deployment.tensor_parallel_size=2&workload.input={distribution:+lognormal,+mean:+2000,+cv:+1}&slo={ttft_p95:+1s}",
  "#rate=15&lifecycle={cold_start:+10s,+probe:+1s,+failures:+[{kind:+crash,+at:+30s,+replica:+0,+for:+20s}],+autoscale:+{policy:+hpa,+min:+1,+max:+4,+metric:+concurrency,+target:+20}}",
  "#lesson=6&step=1&users=85"]) {
  test(`the copied scenario gives the same bytes on the command line: ${hash || "as it comes"}`, () => played(hash, {}, async (page) => {
    await point(page);
    await page.click("#copy-yaml");
    const yaml = await page.evaluate(() => navigator.clipboard.readText());
    await page.click("#scenario summary");
    await page.click("#copy-summary");
    await page.waitForFunction(() => document.getElementById("copy-summary").textContent === "Copied", null, slow);
    const summary = await page.evaluate(() => navigator.clipboard.readText());
    const file = join(mkdtempSync(join(tmpdir(), "clifftop-")), "scenario.yaml");
    writeFileSync(file, yaml);
    const native = execFileSync(program, ["run", file, "--format", "json", "--quiet"], { encoding: "utf8", maxBuffer: 1 << 26 });
    assert.equal(summary, native);
    assert.ok(summary.length > 5000);
  }));
}

test("an address that cannot be read, or asks for what is not there, is answered in words", async () => {
  for (const [hash, words] of [["#rate", /not KEY=VALUE/], ["#rate=%zz", /cannot be read/], ["#lesson=x", /want a number/], ["#lesson=77", /want 1 to 10/], ["#engine.max_num_seq=4", /did you mean max_num_seqs/],
    ["#run.requests=1000000000", /too many for the browser/], ["#model=nothing-like-it", /nothing-like-it/]]) {
    await played(hash, {}, async (page) => {
      await page.waitForFunction(() => [...document.querySelectorAll("#message, .control-problem")].some((e) => !e.hidden && e.textContent), null, slow);
      const said = await page.evaluate(() => [...document.querySelectorAll("#message, .control-problem")].map((e) => (e.hidden ? "" : e.textContent)).join(" "));
      assert.match(said, words, hash);
    });
  }
});

test("a value that is not allowed is said beside its control, and the page goes on", () => played("", {}, async (page) => {
  await point(page);
  await page.fill('[aria-label="Seats (max_num_seqs), exact value"]', "0");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#control-seqs-problem:not([hidden])", slow);
  assert.match(await page.locator("#control-seqs-problem").innerText(), /0 is not allowed \(want 1/);
  await page.fill('[aria-label="Seats (max_num_seqs), exact value"]', "16");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("control-seqs-problem").hidden && !document.getElementById("results").classList.contains("stale"), null, slow);
  assert.match(await page.locator("#yaml").textContent(), /max_num_seqs: 16/);
}));

test("a browser without WebAssembly is told so", () => played("", { init: () => { delete globalThis.WebAssembly; } }, async (page) => {
  await page.waitForSelector("#message:not([hidden])");
  assert.match(await page.locator("#message").innerText(), /lacks WebAssembly/);
}));

test("it reads well on a phone and in the dark", async () => {
  await played("#rate=18&slo={ttft_p95:+1s}", { width: 390, height: 844, dark: true }, async (page) => {
    await curve(page);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than the screen");
    assert.deepEqual(await violations(page), []);
    await shot(page, "play-390-dark");
  });
  await played("#users=200&engine.num_gpu_blocks_override=3000&engine.admission=first-chunk", { width: 1600, dark: true }, async (page) => {
    await curve(page);
    assert.deepEqual(await violations(page), []);
    await shot(page, "play-1600-dark");
  });
  await played("#rate=30&lifecycle={cold_start:+10s,+autoscale:+{policy:+keda,+min:+1,+max:+4,+metric:+concurrency,+target:+20,+scrape:+5s,+polling_interval:+10s}}", { width: 390, height: 844, dark: true }, async (page) => {
    await point(page);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is wider than the screen");
    assert.deepEqual(await violations(page), []);
    await shot(page, "lives-390-dark");
  });
});
