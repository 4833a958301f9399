// browser.mjs - what the tests of pages share: a headless Chromium that may neither complain nor ask the
// network for anything, and tests that count.
//
// SHOTS=DIR keeps screenshots, TIMES=1 prints how long each test takes. CHROMIUM is the browser,
// BJ_ROOT the repository.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const require = createRequire(resolve(process.env.BJ_ROOT, ".browser") + "/");
const { chromium } = require("playwright-core");
export const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
});

const complaints = [];
let succeeded = 0;
export const passed = () => succeeded;
export const address = (file) => "file://" + encodeURI(resolve(file));

export async function open(url, options) {
    const page = await browser.newPage({ reducedMotion: "reduce", ...options });
    page.setDefaultTimeout(10000);
    page.on("console", (m) => complaints.push(`console ${m.type()}: ${m.text()}`));
    page.on("pageerror", (e) => complaints.push(`error: ${e.message}`));
    page.on("request", (r) => {
        if (!r.url().startsWith("file:") || !r.isNavigationRequest())
            complaints.push(`request: ${r.url()}`);
    });
    await page.goto(url);
    return page;
}

export async function test(name, run) {
    const start = Date.now();
    try {
        await run();
        assert.deepEqual(complaints.splice(0), [], "the console and the network stay silent");
        succeeded++;
        if (process.env.TIMES) console.log(`${Date.now() - start} ms: ${name}`);
    } catch (e) {
        console.error(`FAILED: ${name}\n${e.message}`);
        process.exitCode = 1;
    }
}

export const shot = async (page, name) => {
    const path = `${process.env.SHOTS}/${name}.png`;
    if (process.env.SHOTS) await page.screenshot({ path, fullPage: true });
};
export const count = (page, selector) => page.locator(selector).count();
export const text = (page, selector) => page.locator(selector).first().textContent();
