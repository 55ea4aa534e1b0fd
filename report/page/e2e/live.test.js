// The page of clifftop serve, under load. CLIFFTOP is the program.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, open, shot, violations } from "./browser.js";

const program = process.env.CLIFFTOP;
const scenario = join(mkdtempSync(join(tmpdir(), "clifftop-live-")), "fleet.yaml");
const name = `<img src="x" onerror="document.title='broken'"> & "quotes"`;
const fleet = (name, replicas) => writeFileSync(scenario, `name: ${JSON.stringify(name)}
model: llama-3.1-8b
gpu: h100
deployment: {replicas: ${replicas}, router: round-robin}
engine: {max_num_seqs: 8, num_gpu_blocks_override: 2000}
lifecycle: {failures: [{kind: crash, at: 3s, replica: 2, for: 600s}]}
`);
const slow = { timeout: 20_000 };
let browser, server;

before(async () => { browser = await launch(); });
after(async () => { await browser.close(); });

// serve starts a server and returns its address.
async function serve(listen) {
  server = spawn(program, ["serve", scenario, "--listen", listen, "--grace", "0s", "--quiet"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const text of server.stdout) return String(text).trim();
}

// stop ends the server as an interrupt does.
async function stop() {
  const gone = new Promise((done) => server.once("exit", done));
  server.kill("SIGTERM");
  assert.equal(await gone, 0);
}

// load keeps so many requests in the system until the function that it returns is called.
function load(address, users) {
  let over = false;
  const all = Array.from({ length: users }, async (_, i) => {
    while (!over) {
      await fetch(address + "/v1/completions", {
        method: "POST", headers: { "Content-Type": "application/json", "X-Clifftop-Output-Tokens": "400" },
        body: JSON.stringify({ model: "llama-3.1-8b", prompt: "the secret word is abracadabra ".repeat(20) + i, stream: true }),
      }).then(async (r) => { for await (const _ of r.body); }).catch(() => new Promise((done) => setTimeout(done, 100)));
    }
  });
  return () => { over = true; return Promise.all(all); };
}

const shows = (page, tile, least) => page.waitForFunction(([t, n]) => Number(document.querySelector(`[data-tile="${t}"]`).textContent) >= n, [tile, least], slow);

// painted counts the colours of the batch.
const painted = (page) => page.evaluate(() => {
  const c = document.getElementById("bars"), data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  const colours = new Set();
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) colours.add(data.slice(i, i + 3).join());
  return colours.size;
});

test("the page of serve shows the fleet under load, and comes back with another server", async () => {
  fleet(name, 3);
  const address = await serve("127.0.0.1:0");
  let rest = load(address, 40);
  try {
    const page = await open(browser, address, { width: 1280, height: 720 });
    await shows(page, "running", 12);
    await shows(page, "waiting", 4);
    await page.waitForFunction(() => document.querySelectorAll(".charts .uplot").length === 6, null, slow);
    for (const tile of ["ttft", "tpot", "itl"]) {
      await page.waitForFunction((t) => /^[\d.]+ m?s$/.test(document.querySelector(`[data-tile="${t}"]`).textContent), tile, slow);
    }
    assert.match(await page.locator('[data-tile="tokens"]').innerText(), /tok\/s/);
    assert.match(await page.locator('[data-note="kv"]').innerText(), /of 6k/);
    assert.equal(await page.locator("h1").innerText(), name);
    assert.notEqual(await page.title(), "broken");
    assert.ok(await painted(page) >= 3, "the batch is not drawn");
    assert.doesNotMatch(await page.content(), /abracadabra|secret word/);
    await page.waitForFunction(() => /down/.test(document.querySelector("#replicas tbody tr:nth-child(3)").textContent), null, slow);
    await page.waitForFunction(() => /replica 3: down/.test(document.getElementById("changes").innerText), null, slow);

    await page.getByRole("button", { name: "replica 2" }).click();
    await page.waitForFunction(() => document.getElementById("batch-of").textContent === "of replica 2", null, slow);
    assert.equal(await page.locator("#replicas [aria-pressed=true]").innerText(), "replica 2");

    // A server that got no processor for a while says so.
    server.kill("SIGSTOP");
    await page.waitForTimeout(600);
    server.kill("SIGCONT");
    await page.waitForSelector("#lag", { state: "visible", ...slow });
    assert.match(await page.locator("#lag").innerText(), /was up to ([\d.]+ s|[\d.]{3,} ms) behind the clock/);
    const metrics = await (await fetch(address + "/metrics")).text();
    assert.ok(Number(metrics.match(/^clifftop_lag_max_seconds (\S+)$/m)[1]) > 0.3);

    // What is hidden in a chart stays hidden while it goes on.
    const legend = page.locator(".charts .chart-legend button").first();
    await legend.click();
    await page.waitForTimeout(2500);
    assert.equal(await legend.getAttribute("aria-pressed"), "false");

    await page.getByRole("button", { name: "Pause" }).click();
    const was = await page.locator("#caption").innerText();
    await page.waitForTimeout(1200);
    assert.equal(await page.locator("#caption").innerText(), was);
    assert.equal(await page.locator("#link").innerText(), "paused");
    await page.getByRole("button", { name: "Resume" }).click();
    await page.waitForFunction((was) => document.getElementById("caption").textContent !== was, was, slow);

    await page.getByRole("button", { name: "Dark" }).click();
    assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(22, 25, 29)");
    assert.deepEqual(await violations(page), []);
    await shot(page, "live-1280-dark");
    assert.deepEqual(page.complaints, []);

    await stop();
    await page.waitForFunction(() => document.getElementById("link").textContent === "no connection", null, slow);
    fleet("Another fleet", 4);
    assert.equal(await serve(new URL(address).host), address);
    await page.waitForFunction(() => document.querySelector("h1").textContent === "Another fleet" && document.getElementById("link").textContent === "live", null, slow);
    assert.equal(await page.locator("#replicas tbody tr").count(), 4);
    await shows(page, "running", 12);
    assert.deepEqual(page.strangers, []);
    await page.context().close();

    for (const [size, width, height, dark] of [["390-dark", 390, 844, true], ["390-light", 390, 844, false], ["1280-light", 1280, 720, false]]) {
      const page = await open(browser, address, { width, height, dark });
      await shows(page, "running", 12);
      await page.waitForFunction(() => document.querySelectorAll(".charts .uplot").length === 6, null, slow);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${size}: the page is wider than the screen`);
      assert.deepEqual(await violations(page), [], size);
      assert.deepEqual(page.complaints, [], size);
      assert.deepEqual(page.strangers, [], size);
      await shot(page, `live-${size}`);
      await page.context().close();
    }
  } finally {
    rest = rest();
    await stop();
    await rest;
  }
});
