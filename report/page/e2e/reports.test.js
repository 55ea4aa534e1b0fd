// The reports that the commands write, opened from disk. CLIFFTOP is the program.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, test } from "node:test";
import { launch, open, shot, violations } from "./browser.js";

const program = process.env.CLIFFTOP;
const dir = mkdtempSync(join(tmpdir(), "clifftop-reports-"));
let browser;

before(async () => { browser = await launch(); });
after(async () => { await browser.close(); });

const commands = {
  run: ["run", "--rate", "18", "--requests", "2000", "--slo", "ttft_p95<300ms"],
  sweep: ["sweep", "--requests", "600", "--over", "rate=2,6,10,14,18,22,26,30", "--slo", "ttft_p95<1s"],
  compare: ["compare", "--vary", "engine.max_num_batched_tokens=2048,8192", "--requests", "600", "--rate", "12", "--replications", "3"],
  plan: ["plan", "--rate", "5", "--slo", "ttft_p95=1s", "--gpu", "h100-sxm,l40s"],
};

for (const [name, args] of Object.entries(commands)) {
  test(`the report of ${name} opens from disk`, async (t) => {
    const out = join(dir, name);
    try {
      execFileSync(program, [...args, "--out", out, "--quiet"], { stdio: ["ignore", "ignore", "pipe"] });
    } catch (e) {
      if (e.status !== 1) throw new Error(`${args.join(" ")}: ${e.stderr}`); // 1: a criterion fails, which is no fault here
    }
    const file = join(out, "report.html");
    if (!existsSync(file)) { t.skip("it writes none"); return; }
    for (const [size, width, dark] of [["1600-light", 1600, false], ["800-dark", 800, true], ["390-light", 390, false]]) {
      const page = await open(browser, pathToFileURL(file).href, { width, dark });
      await page.waitForSelector("h1");
      await page.waitForTimeout(300); // the charts are drawn in frames
      assert.ok((await page.locator("h1").first().innerText()).length > 0);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth + 1), `${size}: the page is wider than the screen`);
      assert.deepEqual(await violations(page), [], size);
      assert.deepEqual(page.complaints, [], size);
      assert.deepEqual(page.strangers, [], size);
      await shot(page, `report-${name}-${size}`);
      await page.context().close();
    }
  });
}
