// Opens pages in a headless Chromium and records their requests, their console errors and warnings, and the
// accessibility faults that axe-core finds.
import { chromium } from "playwright-core";
import { existsSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

// artifacts is the folder of screenshots.
export const artifacts = process.env.CLIFFTOP_ARTIFACTS || mkdtempSync(join(tmpdir(), "clifftop-e2e-"));
mkdirSync(artifacts, { recursive: true });

export const executable = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((f) => f && existsSync(f));

export const launch = () => chromium.launch({
  executablePath: executable,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

// open opens a page. It records console errors and warnings (complaints) and requests to other hosts (strangers).
export async function open(browser, url, { width = 1600, height = 1000, dark = false, init } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", permissions: url.startsWith("http") ? ["clipboard-read", "clipboard-write"] : [] });
  const page = await context.newPage();
  page.complaints = [];
  page.strangers = [];
  page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") page.complaints.push(m.text()); });
  page.on("pageerror", (e) => page.complaints.push(String(e)));
  context.on("request", (r) => {
    const at = new URL(r.url());
    if (!["data:", "blob:", "file:"].includes(at.protocol) && at.hostname !== "127.0.0.1") page.strangers.push(r.url());
  });
  if (init) await context.addInitScript(init);
  await page.goto(url);
  return page;
}

// violations returns the serious and critical faults that axe-core finds.
export async function violations(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  return violations.filter((v) => v.impact === "serious" || v.impact === "critical")
    .map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.target.join(" ") + " " + (n.any[0] ? n.any[0].message : "")).slice(0, 3).join(" | ")}`);
}

export const shot = (page, name) => page.screenshot({ path: join(artifacts, name + ".png"), fullPage: true });
