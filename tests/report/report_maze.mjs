// report_maze.mjs REPORT.html BARE.html BOTH.html - the report of a maze campaign in headless Chromium.
//
// Loads from disk without a console message or a request; every predictor by its name, with the edges
// of its data; the chosen cell stays, unless it is another maze (BOTH); successors when asked for; a
// drive; a page without graphs (BARE).
// SHOTS=DIR keeps screenshots. CHROMIUM is the browser, BJ_ROOT the repository.
import assert from "node:assert/strict";
import { address, browser, count, open as openPage, passed, shot, test, text } from "./browser.mjs";

const open = (file, options) => openPage(address(file),
    { viewport: { width: 1250, height: 900 }, ...options });

const page = await open(process.argv[2]);
const graphs = (await page.evaluate(() =>
    JSON.parse(document.getElementById("scene-data").textContent))).graphs;
const check = async (k) => {
    const g = graphs[k];
    assert.equal(await count(page, "#edges .m-real"), g.edges.filter((e) => e[2]).length);
    assert.equal(await count(page, "#edges .m-false"), g.edges.filter((e) => !e[2]).length);
    assert.equal(await count(page, "#maze"), 1);
    assert.equal((await page.locator("#summary .big").allTextContents())[0], `${g.edges.length}`);
};

await test("every predictor has its own graph, the cell stays", async () => {
    const names = await page.locator("#predictor option").allTextContents();
    assert.equal(names.length, graphs.length);
    const cell = +Object.keys(graphs[0].sources)[1];
    await check(0);
    await page.click(`.m-cell[data-cell="${cell}"]`);
    for (let k = graphs.length - 1; k >= 0; k--) {
        await page.selectOption("#predictor", `${k}`);
        await check(k);
        assert.equal(await text(page, "#cell-title"), `Cell ${cell}`);
        const rows = await page.locator("#candidates tbody tr").allTextContents();
        assert.equal(rows.length, graphs[k].sources[cell].length, names[k]);
        graphs[k].sources[cell].forEach(([to, cosine], i) =>
            assert.ok(rows[i].startsWith(`${i + 1}${to}${cosine.toFixed(3)}`), rows[i]));
    }
    await shot(page, "report-maze");
});

await test("successors with crossings, only when asked for, and for the next predictor too", async () => {
    const cell = +Object.keys(graphs[0].sources)[1], list = graphs[0].successors[cell];
    assert.equal(await count(page, "#marks .m-successor"), 0);
    await page.click("#reveal");
    assert.equal(await count(page, "#marks .m-successor"), list.length);
    assert.ok((await text(page, "#notice")).startsWith("Successors in the data, with crossings: "));
    await page.selectOption("#predictor", "1");
    assert.equal(await count(page, "#marks .m-successor"), list.length);
});

await test("cells and keys of a picture that came later", async () => {
    await page.click('.m-cell[data-cell="0"]');
    assert.equal(await text(page, "#cell-title"), "Cell 0");
    await page.keyboard.press("ArrowRight");
    assert.equal(await text(page, "#cell-title"), "Cell 1");
    await page.keyboard.press("r");
    assert.equal(await count(page, "#marks .m-successor"), 0);
});

await test("a drive by the chosen predictor", async () => {
    for (const k of [1, 0]) {
        await page.selectOption("#predictor", `${k}`);
        await page.selectOption("#task", "2");
        const drive = graphs[k].drives[2];
        await page.click("#play");
        assert.equal(await text(page, "#clock"), `${drive.steps}`);
        const said = await text(page, "#outcome");
        assert.ok(said.includes(drive.reached ? `reached after ${drive.steps}` : "not reached"), said);
    }
});

await test("the table and the curves", async () => {
    const rows = await page.locator("#results tbody").first().locator("tr").count();
    assert.equal(rows, graphs.length);
    assert.ok(await count(page, "#maze-curves svg.plot") >= 2);
    assert.equal(await count(page, "#no-graph"), 0);
    for (const link of await page.locator("nav a").evaluateAll((a) => a.map((e) => e.getAttribute("href"))))
        assert.equal(await count(page, link), 1, link);
});

await test("phone, dark, without JavaScript, without graphs", async () => {
    const phone = await open(process.argv[2], { viewport: { width: 390, height: 800 }, colorScheme: "dark" });
    assert.ok(await phone.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await shot(phone, "report-maze-phone");
    await phone.close();
    const plain = await open(process.argv[2], { javaScriptEnabled: false });
    assert.equal(await count(plain, "#edges .m-edge"), await count(page, "#edges .m-edge"));
    await plain.close();
    const bare = await open(process.argv[3]);
    assert.equal(await count(bare, "#maze"), 0);
    assert.ok((await text(bare, "#no-graph")).includes("There are no graphs"));
    assert.ok(await count(bare, "#results tbody tr") > 0);
    await bare.close();
});

await test("another maze has its own cells and tasks", async () => {
    const both = await open(process.argv[4]);
    const all = (await both.evaluate(() =>
        JSON.parse(document.getElementById("scene-data").textContent))).graphs;
    const other = all.findIndex((g) => g.cells.length !== all[0].cells.length);
    assert.ok(other > 0);
    await both.selectOption("#task", "3");
    await both.selectOption("#predictor", `${other}`);
    assert.equal(await text(both, "#cell-title"), `Cell ${all[other].source}`);
    assert.equal(await count(both, ".m-cell"), all[other].cells.length);
    const tasks = await both.locator("#task option").allTextContents();
    assert.deepEqual(tasks, all[other].drives.map((d, k) => `${k + 1}: cell ${d.start} to ${d.goal}`));
    assert.ok((await text(both, "#outcome")).startsWith(`From cell ${all[other].drives[0].start} `));
    await shot(both, "report-maze-both");
    await both.close();
});

await browser.close();
console.log(`maze report: ${passed()} tests passed`);
if (passed() < 7) process.exitCode = 1;
