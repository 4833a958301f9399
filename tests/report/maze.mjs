// maze.mjs MAZE.html - looks at a page of bjepa maze show in headless Chromium, as a reader would.
//
// Loads from disk without a console message or a request; cells by click and key; candidates as in the
// data; successors only when asked for; drives by button, slider and key; light, dark, phone.
// SHOTS=DIR keeps screenshots. CHROMIUM is the browser, BJ_ROOT the repository.
import assert from "node:assert/strict";
import { address, browser, count, open as openPage, passed, shot, test, text } from "./browser.mjs";

const open = (options) => openPage(address(process.argv[2]),
    { viewport: { width: 1250, height: 900 }, ...options });
const chosen = (page) => page.evaluate(() =>
    [...document.querySelectorAll('.m-cell[aria-pressed="true"]')].map((c) => +c.dataset.cell));

const page = await open();
const data = await page.evaluate(() => JSON.parse(document.getElementById("scene-data").textContent));

await test("edges are drawn by kind, the source is chosen", async () => {
    assert.equal(await count(page, "#edges .m-real"), data.edges.filter((e) => e[2]).length);
    assert.equal(await count(page, "#edges .m-false"), data.edges.filter((e) => !e[2]).length);
    assert.deepEqual(await chosen(page), [data.source]);
    assert.equal(await count(page, "#edges .from.m-real") + await count(page, "#edges .from.m-false"),
        data.edges.filter((e) => e[0] === data.source).length);
    await shot(page, "maze-light");
});

await test("kinds differ by shape, not only by color", async () => {
    const shapes = await page.evaluate(() => ["m-real", "m-false"].map((kind) => {
        const g = document.querySelector(`#edges .${kind}`);
        return [g.children.length, getComputedStyle(g.children[0]).strokeDasharray];
    }));
    assert.deepEqual(shapes.map(([n]) => n), [2, 3]); // arrow; arrow and cross
    assert.notEqual(shapes[0][1], shapes[1][1]);
});

await test("a click shows the candidates of a cell", async () => {
    await page.click('.m-cell[data-cell="24"]');
    assert.deepEqual(await chosen(page), [24]);
    assert.equal(await text(page, "#cell-title"), "Cell 24");
    const rows = await page.locator("#candidates tbody tr").allTextContents();
    assert.equal(rows.length, data.sources[24].length);
    data.sources[24].forEach(([cell, cosine], k) =>
        assert.ok(rows[k].startsWith(`${k + 1}${cell}${cosine.toFixed(3)}`), rows[k]));
    assert.equal(await count(page, "#marks .m-candidate"), data.sources[24].length);
    assert.equal(await count(page, "#marks .m-candidate.on"),
        data.sources[24].filter((c) => c[1] > data.threshold).length);
});

await test("successors only when asked for", async () => {
    assert.equal(await count(page, "#marks .m-successor"), 0);
    assert.equal(await page.locator("#notice").isVisible(), false);
    assert.ok(!(await text(page, "#candidates tbody")).includes("successor"));
    await page.click("#reveal");
    const list = data.successors[24].map(([v]) => v);
    assert.equal(await count(page, "#marks .m-successor"), list.length);
    assert.equal(await text(page, "#notice"), `Successors in the true graph: ${list.join(", ")}.`);
    assert.equal(await page.getAttribute("#reveal", "aria-pressed"), "true");
    assert.ok(await page.locator("#legend-successor").isVisible());
    await page.click("#reveal");
    assert.equal(await count(page, "#marks .m-successor"), 0);
});

await test("keys: arrows go from cell to cell, R reveals", async () => {
    await page.focus('.m-cell[data-cell="24"]');
    await page.keyboard.press("ArrowUp"); // (4,6) to (3,6)
    assert.deepEqual(await chosen(page), [15]);
    await page.keyboard.press("ArrowRight");
    assert.deepEqual(await chosen(page), [16]);
    assert.equal(await page.evaluate(() => document.activeElement.dataset.cell), "16");
    assert.equal(await count(page, '.m-cell[tabindex="0"]'), 1); // one stop for Tab
    await page.keyboard.press("r");
    assert.equal(await count(page, "#marks .m-successor"), data.successors[16].length);
    await page.keyboard.press("r");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.id), "reveal");
});

await test("a drive, whole at once where motion is not wanted", async () => {
    const won = data.drives.findIndex((d) => d.reached), lost = data.drives.findIndex((d) => !d.reached);
    for (const k of [won, lost].filter((n) => n >= 0)) {
        const drive = data.drives[k];
        await page.selectOption("#task", `${k}`);
        assert.equal(await text(page, "#clock"), "0");
        const said = await text(page, "#outcome");
        assert.ok(said.includes(drive.reached ? `reached after ${drive.steps}` : "not reached"), said);
        await page.click("#play");
        assert.equal(await text(page, "#clock"), `${drive.steps}`);
        const ball = await page.evaluate(() => {
            const b = document.querySelector(".m-ball");
            return [+b.getAttribute("cx") / 48, +b.getAttribute("cy") / 48];
        });
        const end = drive.path.slice(-2);
        assert.ok(Math.hypot(ball[0] - end[0], ball[1] - end[1]) < .01);
        // within the radius of 1, a quarter of a square, exactly when it says so
        assert.equal(Math.hypot(end[0] - drive.xy[0], end[1] - drive.xy[1]) <= .26, drive.reached);
    }
    await page.locator("#time").fill("3");
    assert.equal(await text(page, "#clock"), `${3 * data.drives[0].every}`);
    await shot(page, "maze-drive");
});

await test("playing moves, and stops at the end or when told", async () => {
    const moving = await open({ reducedMotion: "no-preference" });
    await moving.focus(`.m-cell[data-cell="${data.source}"]`);
    await moving.keyboard.press(" ");
    await moving.waitForFunction(() => +document.getElementById("time").value > 3);
    await moving.keyboard.press(" "); // pauses, unless the end was reached
    assert.equal(await moving.getAttribute("#play", "aria-pressed"), "false");
    await moving.close();
    // A first frame that is dated before the click must not step back.
    const early = await open({ reducedMotion: "no-preference" });
    await early.evaluate(() => {
        const real = requestAnimationFrame;
        let first = true;
        window.requestAnimationFrame = (run) => real((now) => {
            run(first ? now - 1000 : now);
            first = false;
        });
        document.getElementById("play").click();
    });
    await early.waitForFunction(() => +document.getElementById("time").value > 0);
    await early.close();
});

await test("dark, phone and without JavaScript", async () => {
    const dark = await open({ colorScheme: "dark" });
    const [floor, line] = await dark.evaluate(() => [".m-floor", "#edges .m-real"].map((s) => {
        const style = getComputedStyle(document.querySelector(s));
        return s === ".m-floor" ? style.fill : style.stroke;
    }));
    assert.equal(floor, "rgb(21, 26, 32)");
    assert.equal(line, "rgb(74, 163, 220)");
    await dark.click("#reveal");
    await shot(dark, "maze-dark");
    await dark.click("#theme");
    assert.equal(await dark.evaluate(() => getComputedStyle(document.querySelector(".m-floor")).fill),
        "rgb(251, 251, 249)");
    await dark.close();
    const phone = await open({ viewport: { width: 390, height: 800 } });
    assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await shot(phone, "maze-phone");
    await phone.close();
    const plain = await open({ javaScriptEnabled: false });
    assert.equal(await count(plain, "#edges .m-edge"), await count(page, "#edges .m-edge"));
    await plain.close();
});

await test("names for those who do not see the picture", async () => {
    assert.match(await page.getAttribute('.m-cell[data-cell="0"]', "aria-label"),
        /^Cell 0, row 1, column 1: \d+ predicted edges?, \d+ real$/);
    const unnamed = await page.evaluate(() => [...document.querySelectorAll("button,select,input")]
        .filter((e) => !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.[0]?.textContent.trim()))
        .map((e) => e.outerHTML));
    assert.deepEqual(unnamed, []);
});

await browser.close();
console.log(`maze page: ${passed()} tests passed`);
if (!passed()) process.exitCode = 1;
