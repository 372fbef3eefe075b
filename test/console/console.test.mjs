// The console in a real browser: every page without findings of axe and of the
// Content-Security-Policy, in light and dark, wide and narrow; live; by keyboard; without
// JavaScript. It is run by `make test-console`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const base = process.env.CONSOLE_URL; // of the admin listener
const calls = process.env.CONSOLE_CALLS; // of the main listener
const pictures = process.env.CONSOLE_PICTURES; // a folder, or empty
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser;
const ids = {};
let refunds = 0;

// ask makes a call that people are asked about, and returns the id of the approval.
async function ask() {
  const answer = await fetch(calls + "/v1/calls", {
    method: "POST", headers: { "Content-Type": "text/plain", "Callgate-Agent": "Analyst" },
    body: JSON.stringify({ tool: { name: "payments.refund", arguments: { payment_id: "pay_abc123", amount: 120 + ++refunds, currency: "EUR" } } }),
  });
  const body = await answer.json();
  assert.equal(answer.status, 202, JSON.stringify(body));
  return body.call_id;
}

async function approval(id) {
  return (await fetch(base + "/v1/approvals/" + id)).json();
}

async function call(agent, completion) {
  const answer = await fetch(calls + "/v1/calls", { method: "POST", headers: { "Content-Type": "text/plain", "Callgate-Agent": agent }, body: completion });
  await answer.text();
  return answer.headers.get("Callgate-Call-Id");
}

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CONSOLE_BROWSER, args: ["--no-sandbox"] });
  for (let i = 0; i < 4; i++) {
    await call("Analyst", '{"tool":{"name":"web.search","arguments":{"query":"agent memory"}}}');
    await call("Analyst", "The answer is 42.");
    ids.near = await call("Analyst", '{"tool":{"name":"web.serch","arguments":{"query":"x"}}}');
    ids.denied = await call("Intern", '{"tool":{"name":"payments.refund","arguments":{"payment_id":"pay_abc123","amount":50,"currency":"EUR"}}}');
    ids.hostile = await call("Analyst", '<script>document.title="owned"</script><img src=x onerror=alert(1)> \u202e {"tool": 1}');
    ids.fault = await call("Analyst", '{"tool":{"name":"web.search","arguments":{"query":"agent memory","limit":5,"lang":"en"}}}');
  }
  ids.asked = await ask();
  await ask(); // so that one waits whatever the tests decide
  const pause = (method, path, body) => fetch(base + path, { method, headers: body && { "Content-Type": "application/json" }, body });
  const stop = await (await pause("POST", "/v1/stops", JSON.stringify({ agent: "Intern", reason: "it is tried" }))).json();
  assert.equal((await pause("DELETE", "/v1/stops/" + stop.stop.id)).status, 200);
  ids.thread = (await (await fetch(base + "/v1/threads")).json()).threads[0].id;
});

after(() => browser?.close());

const pages = () => ({
  overview: "/console", day: "/console?span=24h", agent: "/console/agents/Analyst", unused: "/console/agents/Intern", calls: "/console/calls", filtered: "/console/calls?agent=Intern&verdict=refused", none: "/console/calls?agent=nobody",
  fault: "/console/calls/" + ids.fault, denied: "/console/calls/" + ids.denied, near: "/console/calls/" + ids.near, hostile: "/console/calls/" + ids.hostile,
  approvals: "/console/approvals", approval: "/console/approvals/" + ids.asked, asked: "/console/calls/" + ids.asked,
  check: "/console/check", tools: "/console/tools", tool: "/console/tools/payments.refund",
  limits: "/console/limits", slots: "/console/limits?kind=slots", running: "/console/running", stops: "/console/stops", threads: "/console/threads", thread: "/console/threads/" + ids.thread, candidate: "/console/candidate",
  policy: "/console/policy?agent=Analyst&tool=payments.refund", audit: "/console/audit", login: "/console/login", problem: "/console/nothing",
});

// open opens a page, and gathers what the browser complains about.
async function open(options, path) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (m) => { if (m.type() === "error" && !m.text().includes("404")) complaints.push(m.text()); });
  page.on("pageerror", (e) => complaints.push(String(e)));
  page.on("request", (r) => { if (!r.url().startsWith(base) && !r.url().startsWith("data:")) complaints.push("it asks " + r.url()); });
  if (options.javaScriptEnabled !== false) {
    await page.addInitScript(() => document.addEventListener("securitypolicyviolation", (e) => console.error("CSP " + e.violatedDirective + " " + e.blockedURI)));
  }
  await page.goto(base + path, { waitUntil: "load", timeout: 120000 });
  return { page, complaints, close: () => context.close() };
}

// beyond lists what is wider than the screen: the page itself, on a phone any element, and elsewhere any that does not
// scroll in a region of its own.
function beyond() {
  const narrow = innerWidth < 700;
  return [...document.querySelectorAll("html, body *")].filter((e) => {
    const r = e.getBoundingClientRect();
    if (e === document.documentElement) return e.scrollWidth > innerWidth;
    if (!r.width || e.closest(".hide, .skip, caption, datalist, .top nav ul") || narrow && e.closest("thead") || !narrow && e.closest(".scroll")) return false;
    return r.left < -1 || r.right > innerWidth + 1 || narrow && e.matches(".scroll") && e.scrollWidth > e.clientWidth + 1;
  }).map((e) => `${e.tagName} ${e.className} ${e.textContent.slice(0, 40)}`);
}

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1440, 390]) {
    test(`pages, ${colorScheme}, ${width} px`, { timeout: 600000 }, async () => {
      for (const [name, path] of Object.entries(pages())) {
        // axe is put into the page, which the policy of the page would not allow.
        const { page, complaints, close } = await open({ colorScheme, viewport: { width, height: 800 }, bypassCSP: true }, path);
        await page.evaluate(axe);
        const found = await page.evaluate(() => axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
        assert.deepEqual(found.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.html).join(" ")), [], name);
        assert.deepEqual(await page.evaluate(beyond), [], name + " is wider than the screen");
        assert.deepEqual(complaints, [], name);
        await close();
        const strict = await open({ colorScheme, viewport: { width, height: 800 } }, path);
        await strict.page.waitForTimeout(100);
        assert.deepEqual(strict.complaints, [], name);
        assert.notEqual(await strict.page.title(), "owned");
        await strict.close();
      }
    });
  }
}

test("a call appears while the page is open, under Trusted Types", { timeout: 300000 }, async () => {
  const { page, complaints, close } = await open({}, "/console/calls");
  await page.getByText(/^Live/).waitFor({ timeout: 120000 });
  const id = await call("Intern", "live");
  await page.getByRole("link", { name: id }).waitFor({ timeout: 120000 });
  assert.deepEqual(complaints, []);
  await close();
});

test("what is being written stays, and so does the focus", { timeout: 300000 }, async () => {
  const { page, close } = await open({}, "/console/calls");
  await page.getByText(/^Live/).waitFor({ timeout: 120000 });
  const field = page.getByLabel("Agent", { exact: true });
  await field.fill("Int");
  const id = await call("Intern", "again");
  await page.getByRole("link", { name: id }).waitFor({ timeout: 120000 });
  assert.equal(await field.inputValue(), "Int");
  assert.ok(await field.evaluate((e) => e === document.activeElement));
  await close();
});

test("the playground by keyboard alone, without JavaScript", { timeout: 300000 }, async () => {
  const { page, close } = await open({ javaScriptEnabled: false }, "/console/check");
  for (let i = 0; i < 30 && !(await page.locator("textarea:focus").count()); i++) await page.keyboard.press("Tab");
  await page.keyboard.type('Sure: {"tool": 1}');
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Verdict" }).waitFor({ timeout: 120000 });
  assert.equal(await page.locator("mark").textContent(), "{");
  assert.ok(await page.getByText("mixed_output").count());
  await close();
});

// tab presses Tab until an element has the focus.
async function tab(page, selector) {
  for (let i = 0; i < 60 && !(await page.locator(selector + ":focus").count()); i++) await page.keyboard.press("Tab");
  assert.equal(await page.locator(selector + ":focus").count(), 1, selector);
}

for (const [vote, state] of [["yes", "approved"], ["no", "denied"]]) {
  test(`an approval by keyboard alone, without JavaScript: ${vote}`, { timeout: 300000 }, async () => {
    const id = await ask();
    const { page, close } = await open({ javaScriptEnabled: false }, "/console/approvals");
    await tab(page, `a[href="/console/approvals/${id}"]`);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Decide" }).waitFor({ timeout: 120000 });
    // Enter in a field decides nothing.
    await tab(page, "#decide summary");
    await page.keyboard.press("Enter");
    await tab(page, "#for");
    await page.keyboard.press("Enter");
    await page.waitForTimeout(300);
    assert.equal((await approval(id)).votes.length, 0);
    await tab(page, "textarea");
    await page.keyboard.type("looked at it");
    await tab(page, `button[value="${vote}"]`);
    await page.keyboard.press("Enter");
    await page.locator("#approval .tag", { hasText: state }).first().waitFor({ timeout: 120000 });
    const decided = await approval(id);
    assert.deepEqual([decided.state, decided.votes[0].vote, decided.votes[0].reason], [state, vote, "looked at it"]);
    assert.equal(page.url(), base + "/console/approvals/" + id);
    await page.reload();
    assert.equal((await approval(id)).votes.length, 1);
    await close();
  });
}

test("a vote under the policy of the page, and what is written stays while the page is live", { timeout: 300000 }, async () => {
  const id = await ask();
  const { page, complaints, close } = await open({}, "/console/approvals/" + id);
  await page.getByText(/^Live/).waitFor({ timeout: 120000 });
  await page.getByLabel(/^Reason/).fill("by mouse");
  await ask();
  await page.getByText(/^Live: updated/).waitFor({ timeout: 120000 });
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("by mouse").waitFor({ timeout: 120000 });
  assert.equal((await approval(id)).state, "approved");
  assert.deepEqual(complaints, []);
  await close();
});

test("limits of one kind by keyboard alone, without JavaScript", { timeout: 300000 }, async () => {
  const { page, close } = await open({ javaScriptEnabled: false }, "/console/limits");
  const all = await page.locator("#limits tbody tr").count();
  await tab(page, "select");
  await page.keyboard.press("c"); // the first that begins so: caller
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForURL(/kind=caller/, { timeout: 120000 });
  const some = await page.locator("#limits tbody tr").count();
  assert.ok(all > some, `${all} limits, ${some} of callers`);
  await close();
});

test("an approval can be decided on a phone without scrolling", { timeout: 300000 }, async () => {
  const id = await ask();
  const { page, complaints, close } = await open({ viewport: { width: 390, height: 844 } }, "/console/approvals/" + id);
  for (const name of ["Approve", "Deny"]) {
    const box = await page.getByRole("button", { name }).boundingBox();
    assert.ok(box.y >= 0 && box.y < 640 && box.height >= 40, `${name} is at ${JSON.stringify(box)}`);
  }
  const shown = await page.getByRole("region", { name: "The arguments" }).boundingBox();
  assert.ok(shown.y + 60 < 640, "the arguments begin at " + shown.y);
  await page.getByRole("button", { name: "Deny" }).click();
  await page.locator("#approval .tag", { hasText: "denied" }).first().waitFor({ timeout: 120000 });
  assert.equal((await approval(id)).state, "denied");
  assert.deepEqual(complaints, []);
  await close();
});

test("activity, changes and ids without JavaScript", { timeout: 300000 }, async () => {
  const total = (await (await fetch(base + "/v1/activity")).json()).total;
  assert.ok(total.allowed >= 4 && total.asked >= 1 && total.refused >= 12 && total.text >= 4 && total.ran.count >= 4, JSON.stringify(total));
  const { page, close } = await open({ javaScriptEnabled: false }, "/console");
  assert.ok(await page.locator("svg rect.no").count(), "no refusal is drawn");
  await page.locator("#activity summary").click();
  assert.ok(await page.getByRole("cell", { name: /unknown_tool/ }).count(), "the table has no codes");
  assert.deepEqual(await page.locator("#changes .tag").allTextContents(), ["resumed", "stopped"]);
  for (const [id, path] of [[ids.fault, "/console/calls/" + ids.fault], ["Analyst", "/console/agents/Analyst"], [ids.thread, "/console/threads/" + ids.thread]]) {
    await page.getByRole("textbox", { name: "Id or name" }).fill(id);
    await page.getByRole("button", { name: "Find" }).click();
    await page.waitForURL(base + path, { timeout: 120000 });
  }
  await close();
});

test("pages are told apart without JavaScript", { timeout: 300000 }, async () => {
  for (const [name, path] of Object.entries(pages())) {
    const { page, close } = await open({ javaScriptEnabled: false }, path);
    assert.equal(await page.locator("h1").count(), 1, name);
    await close();
  }
});

test("pictures", { timeout: 300000, skip: !pictures }, async () => {
  for (let i = 0; i < 3; i++) {
    await call("Analyst", '{"tool":{"name":"web.serch","arguments":{"query":"x"}}}');
    await call("Intern", '{"tool":{"name":"payments.refund","arguments":{"payment_id":"pay_abc123","amount":50,"currency":"EUR"}}}');
    ids.fault = await call("Analyst", '{"tool":{"name":"web.search","arguments":{"query":"agent memory","limit":5}}}');
    await call("Analyst", '{"tool":{"name":"web.search","arguments":{"query":"agent memory"}}}');
  }
  for (const [name, path, options, height] of [
    ["overview", "/console?span=15m", {}, 780], ["call", "/console/calls/" + ids.fault, {}, 760], ["approval", "/console/approvals/" + await ask(), {}, 760], ["tools-dark", "/console/tools", { colorScheme: "dark" }, 480], ["limits", "/console/limits", {}, 760],
    ["agent", "/console/agents/Analyst", {}, 520], ["approval-phone", "/console/approvals/" + await ask(), { viewport: { width: 390, height: 760 } }, 760],
  ]) {
    const { page, close } = await open({ viewport: { width: 1060, height }, ...options }, path);
    await page.screenshot({ path: `${pictures}/${name}.png`, animations: "disabled" });
    await close();
  }
});
