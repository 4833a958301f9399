// page.mjs REPORT.html VIEW.html - looks at pages of bjepa in headless Chromium, as a reader would.
//
// Loads from disk without a console message or a request; scenes by click and key; playing; what
// happened only when asked for; the law; hover and focus; other arms; light, dark, phone, paper;
// contrast and names for those who do not see the picture. What the page says about a branch is
// compared with the embedded data, decoded here once more.
// SHOTS=DIR keeps screenshots, TIMES=1 prints how long each test takes. CHROMIUM is the browser,
// BJ_ROOT the repository.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { address, browser, count, open as openPage, passed, shot, test, text } from "./browser.mjs";

const [report, view] = process.argv.slice(2).map(address);
const open = (url, options) => openPage(url, { viewport: { width: 1200, height: 900 }, ...options });

// The data as the page has it, and what it means.
const readData = (page) =>
    page.evaluate(() => JSON.parse(document.getElementById("scene-data").textContent));
const endOf = (line) => line.reduce((p, v, i) => (p[i % 2] += v / 100, p), [0, 0]);
const maneuver = (line) => {
    const [x, y] = endOf(line), angle = Math.atan2(y, x) / Math.PI * 180;
    if (Math.hypot(x, y) < 2) return "stop";
    return angle >= 30 ? "left" : angle <= -30 ? "right" : "straight";
};

// The same page with other data: changed(data) is the address of it.
let written = 0;
async function changed(data) {
    const name = `changed-${written++}.html`, json = JSON.stringify(data);
    await writeFile(name, (await readFile(new URL(report), "utf8")).replace(
        /(id="scene-data">)[^]*?(<\/script>)/, (all, before, after) => before + json + after));
    return address(name);
}
const copyOf = (value) => JSON.parse(JSON.stringify(value));
const lineTo = (x, y) => Array.from({ length: 60 }, () => [100 * x / 60, 100 * y / 60]).flat();

const page = await open(report);
const data = await readData(page);
const models = data.models.length;

await test("scenes, panels and branches are those of the data", async () => {
    assert.equal(data.scenes.length, 12);
    assert.equal(models, 6);
    assert.equal(await count(page, ".thumb"), 12);
    assert.equal(await count(page, ".panel"), 2);
    const arms = page.locator(".panel").nth(0).locator("select.arm option");
    assert.deepEqual(await arms.allTextContents(),
        ["full-set", "specialization", "point, K = 1", "true distribution"]);
    assert.equal(await page.locator("select.arm").nth(0).inputValue(), "0");
    assert.equal(await page.locator("select.arm").nth(1).inputValue(), "1");
    for (const scene of data.scenes)
        for (const f of scene.forecast) {
            assert.equal(f.w.length, f.p.length);
            assert.ok(Math.abs(f.w.reduce((a, b) => a + b) - 1) < 1e-3);
            for (const line of f.p) assert.equal(line.length, 2 * data.fut);
        }
    const spread = (f) => f.w.reduce((sum, v, k) => sum + f.w.reduce((inner, u, l) => {
        const a = endOf(f.p[k]), b = endOf(f.p[l]);
        return inner + v * u * Math.hypot(a[0] - b[0], a[1] - b[1]);
    }, 0), 0);
    const spreads = data.scenes.map((s) => s.forecast.reduce((sum, f) => sum + spread(f), 0));
    spreads.forEach((s, i) => assert.ok(i === 0 || s <= spreads[i - 1] + 0.1, `${spreads}`));
    assert.ok(spreads[0] > spreads.at(-1) + 0.5);
    const forecast = data.scenes[0].forecast[0];
    const order = forecast.w.map((w, k) => [w, k]).sort((a, b) => b[0] - a[0] || a[1] - b[1]);
    const rows = page.locator(".panel").nth(0).locator(".row");
    assert.equal(await rows.count(), 6);
    for (let i = 0; i < 6; i++) {
        const [w, k] = order[i];
        assert.equal(await rows.nth(i).locator(".dot").textContent(), String(k + 1));
        const shown = (100 * w).toFixed(w < 0.0995 ? 1 : 0) + "\u2009%";
        assert.equal(await rows.nth(i).locator(".value").textContent(), shown);
        assert.equal(await rows.nth(i).locator(".maneuver").textContent(), maneuver(forecast.p[k]));
    }
    await shot(page, "first");
});

await test("branches: the likely one is wider and stronger, and ends where it says", async () => {
    const crafted = copyOf(data);
    const ends = [[40, 0], [25, 24], [25, -24], [1, 1], [40, 20], [-9, -1]];
    const words = ["straight", "left", "right", "stop", "straight", "right"];
    const w = [0.35, 0.25, 0.2, 0.12, 0.06, 0.02];
    crafted.scenes[0].forecast[0] = { w, p: ends.map(([x, y]) => lineTo(x, y)) };
    const fan = await open(await changed(crafted));
    const rows = fan.locator(".panel").nth(0).locator(".row .maneuver");
    assert.deepEqual(await rows.allTextContents(), words);
    assert.match(await text(fan, ".foot"),
        /^In all: straight 41\u2009%, left 25\u2009%, right 22\u2009%, stop 12\u2009%$/);
    const lines = await fan.evaluate(() =>
        [...document.querySelectorAll(".panel")[0].querySelectorAll(".branch")]
            .filter((g) => g.querySelector(".hit")).map((g) => ({
                k: +g.dataset.k,
                width: +g.querySelectorAll(".line")[1].getAttribute("stroke-width"),
                opacity: +g.querySelectorAll(".line")[1].getAttribute("opacity"),
                d: g.querySelectorAll(".line")[1].getAttribute("d"),
            })).sort((a, b) => a.k - b.k));
    assert.equal(lines.length, 6);
    for (let i = 1; i < 6; i++) {
        assert.ok(lines[i].width < lines[i - 1].width);
        assert.ok(lines[i].opacity < lines[i - 1].opacity);
    }
    // Ahead is up, left is left, one scale for all: screen = start + s (-y, -x).
    const screen = lines.map(({ d }) => {
        const xy = d.split(/[ML]/).filter((s) => s).map((s) => s.split(" ").map(Number));
        return [xy.at(-1)[0] - xy[0][0], xy.at(-1)[1] - xy[0][1]];
    });
    const scale = -screen[0][1] / 40;
    assert.ok(scale > 3);
    ends.forEach(([x, y], i) => {
        assert.ok(Math.abs(screen[i][0] + scale * y) < 0.3, `${screen[i]} for ${x},${y}`);
        assert.ok(Math.abs(screen[i][1] + scale * x) < 0.3, `${screen[i]} for ${x},${y}`);
    });
    // The Energy Score by hand: two branches 10 m apart, one of them right.
    crafted.scenes[0].forecast[0] = { w: [0.5, 0.5], p: [lineTo(40, 0), lineTo(40, 0)] };
    crafted.scenes[0].forecast[0].p[1][1] += 1000;
    crafted.scenes[0].future.p = lineTo(40, 0);
    await fan.goto(await changed(crafted));
    await fan.click("#reveal");
    assert.match(await text(fan, ".foot"), /Energy Score of this scene 2\.50 m/);
    assert.deepEqual(await fan.locator(".panel").nth(0).locator(".row .far").allTextContents(),
        ["0.0 m off", "10.0 m off"]);
    await shot(fan, "fan");
    await fan.close();
});

await test("road users stand on the drivable area", async () => {
    const inside = (ring, x, y) => {
        const at = [];
        let px = 0, py = 0, odd = false;
        for (let i = 0; i < ring.length; i += 2) at.push([px += ring[i], py += ring[i + 1]]);
        at.forEach(([ax, ay], i) => {
            const [bx, by] = at[(i + 1) % at.length];
            if ((ay > y) !== (by > y) && x < ax + (y - ay) / (by - ay) * (bx - ax)) odd = !odd;
        });
        return odd;
    };
    const vehicles = data.scenes.filter((scene) => scene.type === "vehicle");
    assert.ok(vehicles.length > 5);
    for (const scene of vehicles) {
        assert.ok(scene.area.some((ring) => inside(ring, 0, 0)), scene.id);
        assert.ok(!scene.area.every((ring) => inside(ring, 50000, 50000)));
    }
});

await test("a click shows another scene", async () => {
    await page.locator(".thumb").nth(4).click();
    assert.equal(await text(page, "#scene-title"), data.scenes[4].id);
    assert.equal(await text(page, "#scene-number"), "5 / 12");
    assert.equal(await page.locator(".thumb[aria-current]").count(), 1);
    await page.click("#previous");
    assert.equal(await text(page, "#scene-title"), data.scenes[3].id);
    await page.click("#next");
    await page.click("#next");
    assert.equal(await text(page, "#scene-title"), data.scenes[5].id);
});

await test("arrow keys walk through the scenes and take the focus along", async () => {
    await page.locator(".thumb").nth(10).click();
    await page.keyboard.press("ArrowRight");
    assert.equal(await text(page, "#scene-number"), "12 / 12");
    await page.keyboard.press("ArrowRight");
    assert.equal(await text(page, "#scene-number"), "1 / 12");
    await page.keyboard.press("ArrowLeft");
    assert.equal(await text(page, "#scene-number"), "12 / 12");
    assert.equal(await page.evaluate(() =>
        document.activeElement.getAttribute("aria-current")), "true");
    await page.locator("select.seed").nth(0).focus(); // a select keeps its own keys
    await page.keyboard.press("ArrowLeft");
    assert.equal(await text(page, "#scene-number"), "12 / 12");
});

await test("the space bar plays and pauses; the slider reaches into the past", async () => {
    await page.locator(".stage").nth(0).focus();
    const before = await page.evaluate(() => scrollY);
    await page.keyboard.press("Space");
    await page.waitForFunction(() => +document.getElementById("time").value > 0.3);
    assert.equal(await page.getAttribute("#play", "aria-pressed"), "true");
    assert.ok(+(await page.inputValue("#time")) < 6);
    await page.keyboard.press("Space");
    assert.equal(await page.getAttribute("#play", "aria-pressed"), "false");
    const stopped = await page.inputValue("#time");
    await page.waitForTimeout(150);
    assert.equal(await page.inputValue("#time"), stopped);
    assert.equal(await page.evaluate(() => scrollY), before, "the page does not scroll instead");

    const focalAt = async (t) => {
        await page.evaluate((v) => {
            const slider = document.getElementById("time");
            slider.value = v;
            slider.dispatchEvent(new Event("input"));
        }, t);
        const box = await page.locator(".stage .focal").first().boundingBox();
        return [box.x + box.width / 2, box.y + box.height / 2];
    };
    const now = await focalAt(0), later = await focalAt(6), past = await focalAt(-4.9);
    assert.ok(Math.hypot(later[0] - now[0], later[1] - now[1]) < 1, "nobody knows where it goes");
    assert.ok(past[1] > now[1] + 5 || Math.hypot(past[0] - now[0], past[1] - now[1]) > 5);
    assert.match(await text(page, "#clock"), /^\u22124\.9 s$/);
});

await test("what happened is shown when asked for, and for one scene only", async () => {
    await page.locator(".thumb").nth(2).click();
    assert.equal(await count(page, ".stage .future"), 0);
    assert.equal(await text(page, "#notice"), "");
    const fits = await page.locator(".stage").nth(0).locator(".hit").first().getAttribute("d");
    assert.match(await text(page, "#reveal"), /hindsight/);
    await page.click("#reveal");
    assert.equal(await count(page, ".stage .future"), 2);
    assert.equal(await page.getAttribute("#reveal", "aria-pressed"), "true");
    assert.match(await text(page, "#notice"), /^Hindsight/);
    assert.ok(await page.isVisible("#notice"));
    assert.match(await text(page, ".foot"),
        /True future: (stop|straight|left|right); Energy Score/);
    const [x, y] = endOf(data.scenes[2].future.p);
    const { w, p } = data.scenes[2].forecast[0], heaviest = w.indexOf(Math.max(...w));
    const end = endOf(p[heaviest]);
    assert.equal(await page.locator(".row .far").first().textContent(),
        Math.hypot(end[0] - x, end[1] - y).toFixed(1) + " m off");
    await shot(page, "revealed");
    await page.click("#next");
    assert.equal(await count(page, ".stage .future"), 0);
    assert.equal(await page.getAttribute("#reveal", "aria-pressed"), "false");
    await page.locator(".thumb").nth(2).click();
    assert.equal(await count(page, ".stage .future"), 0);
    assert.equal(
        await page.locator(".stage").nth(0).locator(".hit").first().getAttribute("d"), fits);
    await page.locator(".stage").nth(1).focus();
    await page.keyboard.press("r");
    assert.equal(await count(page, ".stage .future"), 2);
    await page.keyboard.press("r");
    assert.equal(await count(page, ".stage .future"), 0);
});

await test("before it is revealed, nothing on the page depends on what happened", async () => {
    const drawn = (p) => p.evaluate(() => document.getElementById("panels").innerHTML);
    const honest = await open(report);
    const away = copyOf(data);
    for (const scene of away.scenes) scene.future.p = lineTo(900, 900); // off the map
    const other = await open(await changed(away));
    assert.equal(await drawn(other), await drawn(honest));
    for (const p of [honest, other]) await p.click("#reveal");
    assert.notEqual(await drawn(other), await drawn(honest));
    for (const p of [honest, other]) await p.close();
});

await test("the true distribution", async () => {
    await page.locator(".thumb").nth(0).click();
    assert.equal(await count(page, ".stage .law"), 0);
    await page.click("#law");
    assert.equal(await count(page, ".stage .law"), 2 * data.scenes[0].law.w.length);
    assert.ok(await page.isVisible("#legend-law"));
    await page.click("#law");
    assert.equal(await count(page, ".stage .law"), 0);
});

await test("the true distribution as a panel: its modes, their names, draws from it", async () => {
    const truth = data.scenes[0].law, select = page.locator("select.arm").nth(1);
    await select.selectOption({ label: "true distribution" });
    const panel = page.locator(".panel").nth(1);
    assert.equal(await panel.locator(".draw").count(), 40);
    assert.equal(truth.d.length, 40);
    assert.equal(await panel.locator(".row").count(), truth.w.length);
    assert.deepEqual(await panel.locator(".row .maneuver").allTextContents(), truth.n);
    assert.equal(await panel.locator("select.seed").isVisible(), false);
    assert.ok(await page.isVisible("#legend-draws"));
    await page.click("#reveal");
    assert.doesNotMatch(await panel.locator(".foot").textContent(), /Energy Score/);
    await page.click("#reveal");
    await select.selectOption({ label: "specialization" });
    assert.equal(await panel.locator("select.seed").isVisible(), true);
    assert.equal(await page.isVisible("#legend-draws"), false);
});

await test("pointing at a branch tells its probability and maneuver", async () => {
    const stage = page.locator(".stage").nth(0);
    const forecast = data.scenes[0].forecast[0];
    const mark = stage.locator(".branch:has(circle)").last(); // drawn last, hence not covered
    const k = +(await mark.getAttribute("data-k"));
    await mark.locator("circle").hover();
    const tip = stage.locator(".tip");
    assert.ok(await tip.isVisible());
    const shown = (100 * forecast.w[k]).toFixed(forecast.w[k] < 0.0995 ? 1 : 0) + "\u2009%";
    assert.equal(await tip.textContent(), `Branch ${k + 1}: ${shown}, ${maneuver(forecast.p[k])}`);
    assert.equal(await stage.locator(".branch.on").count(), 2); // line and end
    await page.mouse.move(5, 5);
    assert.ok(!(await tip.isVisible()));
    const row = page.locator(".panel").nth(0).locator(".row").nth(1);
    await row.focus();
    assert.equal(await stage.locator(".branch.on").count(), 2);
    assert.match(await row.getAttribute("aria-label"),
        /^Branch \d: [\d.]+\u2009%, (stop|straight|left|right), ends/);
    await page.keyboard.press("Enter");
    assert.equal(await row.getAttribute("aria-pressed"), "true");
    await page.locator(".stage").nth(0).focus();
    assert.equal(await stage.locator(".branch.on").count(), 2, "a chosen branch stays marked");
});

await test("other arms and seeds", async () => {
    const panel = page.locator(".panel").nth(1);
    await panel.locator("select.arm").selectOption({ label: "point, K = 1" });
    assert.equal(await panel.locator(".row").count(), 1);
    const picture = panel.locator(".stage > svg");
    assert.match(await picture.getAttribute("aria-label"), /^point, K = 1, seed 0: Branch 1/);
    await panel.locator("select.seed").selectOption({ label: "seed 1" });
    assert.match(await picture.getAttribute("aria-label"), /seed 1/);
    const drawn = await panel.locator(".hit").getAttribute("d");
    await panel.locator("select.seed").selectOption({ label: "seed 0" });
    assert.notEqual(await panel.locator(".hit").getAttribute("d"), drawn);
    await page.locator(".thumb").nth(1).click();
    assert.match(await picture.getAttribute("aria-label"), /^point/, "the choice stays");
});

await test("everything that can be used has a name and shows its focus", async () => {
    const nameless = await page.evaluate(() =>
        [...document.querySelectorAll("button, select, input, a, summary, svg[role=img]")]
            .filter((e) => {
            const label = e.labels && e.labels[0] ? e.labels[0].textContent : "";
            return !(e.getAttribute("aria-label") || label || e.textContent || "").trim();
        }).map((e) => e.outerHTML.slice(0, 80)));
    assert.deepEqual(nameless, []);
    await page.evaluate(() => { document.activeElement.blur(); scrollTo(0, 0); });
    const reached = new Set();
    for (let i = 0; i < 60; i++) {
        await page.keyboard.press("Tab");
        const e = await page.evaluate(() => {
            const a = document.activeElement, style = getComputedStyle(a);
            const what = a.id || a.className.split(" ")[0] || a.tagName;
            return { what, outline: style.outlineStyle };
        });
        reached.add(e.what);
        if (e.what !== "BODY") assert.equal(e.outline, "solid", `${e.what} shows no focus`);
    }
    for (const what of ["skip", "theme", "thumb", "play", "time", "reveal", "law", "arm", "seed",
        "stage", "row"])
        assert.ok(reached.has(what), `Tab does not reach ${what}, only ${[...reached]}`);
    assert.equal(await count(page, ".thumb[tabindex='0']"), 1, "one stop for all small pictures");
});

const contrast = (p) => p.evaluate(() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const known = new Map();
    const rgba = (color) => {
        if (!known.has(color)) known.set(color, paint(color));
        return known.get(color);
    };
    const paint = (color) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const ground = (e) => {
        for (; e; e = e.parentElement) {
            const c = rgba(getComputedStyle(e).backgroundColor);
            if (c[3] > 250) return c;
        }
        return [255, 255, 255];
    };
    const luminance = (c) => c.slice(0, 3).map((v) => v / 255)
        .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const poor = [];
    const texts = "p, td, th, h1, h2, a, button, select, figcaption, .what, .big, .tag, .dot";
    for (const e of document.querySelectorAll(texts)) {
        if (!e.textContent.trim() || !e.checkVisibility() || e.disabled) continue;
        const a = luminance(rgba(getComputedStyle(e).color)), b = luminance(ground(e));
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const least = e.classList.contains("dot") ? 2.2 : 4.5; // a digit, again in its label
        if (ratio < least) poor.push(`${e.tagName}.${e.className} ${ratio.toFixed(2)}`);
    }
    return [...new Set(poor)];
});

await test("light and dark, by the system and by the button", async () => {
    const ground = (p) => p.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground(page);
    assert.deepEqual(await contrast(page), []);
    await page.click("#theme");
    const dark = await ground(page);
    assert.notEqual(dark, light);
    assert.equal(await page.getAttribute("#theme", "aria-label"), "Switch to light");
    assert.deepEqual(await contrast(page), []);
    await page.reload();
    assert.equal(await ground(page), dark, "the choice outlives the page");
    await page.click("#theme");
    const system = await open(report, { colorScheme: "dark" });
    assert.equal(await ground(system), dark);
    await shot(system, "dark");
    await system.click("#theme");
    assert.equal(await ground(system), light);
    await system.close();
});

await test("a phone: nothing sticks out, pictures below each other, everything works", async () => {
    for (const width of [320, 768]) {
        const phone = await open(report, { viewport: { width, height: 760 }, hasTouch: true });
        const wide = await phone.evaluate(() => document.documentElement.scrollWidth);
        assert.equal(wide, width, `at ${width} the page is ${wide} wide`);
        if (width < 760) {
            const a = await phone.locator(".panel").nth(0).boundingBox();
            const b = await phone.locator(".panel").nth(1).boundingBox();
            assert.ok(b.y > a.y + a.height - 1);
        }
        await phone.locator("#reveal").tap();
        assert.equal(await count(phone, ".stage .future"), 2);
        await phone.locator(".row").first().tap();
        assert.equal(await phone.locator(".row").first().getAttribute("aria-pressed"), "true");
        await shot(phone, `phone-${width}`);
        await phone.close();
    }
});

await test("paper: no controls, folded parts opened, dark pages turn light", async () => {
    const dark = await open(report, { colorScheme: "dark" });
    await dark.emulateMedia({ media: "print", colorScheme: "dark" });
    assert.equal(await dark.evaluate(() => getComputedStyle(document.body).backgroundColor),
        "rgb(255, 255, 255)");
    for (const gone of [".top", ".strip", ".controls", ".keys"])
        assert.ok(!(await dark.isVisible(gone)), `${gone} is printed`);
    assert.deepEqual(await contrast(dark), []);
    await dark.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.equal(await count(dark, "details:not([open])"), 0);
    await dark.setViewportSize({ width: 688, height: 1000 }); // A4 between its margins
    const wide = await dark.evaluate(() => [...document.querySelectorAll("table, figure, .panel")]
        .filter((e) => e.getBoundingClientRect().right > 689).map((e) => e.closest("section").id));
    assert.deepEqual(wide, []);
    await dark.evaluate(() => dispatchEvent(new Event("afterprint")));
    assert.ok(await count(dark, "details:not([open])") > 0);
    const pdf = await dark.pdf({ format: "A4" });
    assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
    assert.ok(pdf.length > 50000);
    if (process.env.SHOTS)
        await writeFile(`${process.env.SHOTS}/paper.pdf`, pdf);
    await dark.close();
});

await test("links lead to sections; without scripts all but the scenes is there", async () => {
    const broken = await page.evaluate(() => [...document.querySelectorAll("a[href^='#']")]
        .filter((a) => !document.getElementById(a.getAttribute("href").slice(1)))
        .map((a) => a.outerHTML));
    assert.deepEqual(broken, []);
    const doubled = await page.evaluate(() => {
        const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
        return ids.filter((id, i) => ids.indexOf(id) !== i);
    });
    assert.deepEqual(doubled, []);
    const plain = await open(report, { javaScriptEnabled: false });
    assert.ok(await plain.isVisible("#results table"));
    assert.ok(await plain.isVisible("noscript p"));
    assert.ok(!(await plain.isVisible("#browser")));
    assert.ok(await count(plain, "svg.plot") > 6);
    await plain.close();
});

await test("the viewer: forecast and truth, the name of a file is text", async () => {
    const v = await open(view);
    assert.equal(await v.title(), 'Forecasts of one <b>"&');
    assert.equal(await text(v, "h1"), 'Forecasts of one <b>"&');
    assert.equal(await count(v, "h1 b"), 0);
    assert.equal(await count(v, ".panel"), 2);
    assert.equal(await count(v, "select"), 0);
    assert.equal(await count(v, ".thumb"), 3);
    assert.equal(await text(v, ".panel-head strong"), 'one <b>"&');
    assert.equal(await v.locator(".panel-head strong").nth(1).textContent(), "true distribution");
    assert.equal(await v.locator(".panel").nth(0).locator(".row").count(), 6);
    await shot(v, "view");
    await v.close();
});

await test("scenes at a glance: both sides, probabilities that add up, a way into the browser", async () => {
    const v = await open(view), shown = await readData(v);
    assert.equal(await count(v, ".glance"), 3);
    assert.equal(await count(v, ".glance-picture svg"), 6);
    for (let i = 0; i < 3; i++) {
        const card = v.locator(".glance").nth(i), law = shown.scenes[i].law;
        assert.equal(await card.locator(".draw").count(), 40);
        assert.equal(await card.locator(".future").count(), 1);
        const rows = (await card.locator(".numbers").allTextContents()).map((line) =>
            line.match(/[\d.]+(?=\u2009%)/g).map(Number));
        const sum = (k) => rows.reduce((total, row) => total + row[k], 0);
        assert.ok(Math.abs(sum(0) - 100) < 3 && Math.abs(sum(1) - 100) < 3, `${rows}`);
        // The likeliest true mode, and the weight of the futures that are closest to it.
        const path = (line) => {
            const at = [0, 0];
            return line.map((step, j) => (at[j % 2] += step / 100));
        };
        const far = (a, b) => a.reduce((total, x, j) => total + (x - b[j]) ** 2, 0);
        const modes = law.p.map(path);
        const mass = law.w.map(() => 0);
        shown.scenes[i].forecast[0].w.forEach((w, k) => {
            const all = modes.map((m) => far(path(shown.scenes[i].forecast[0].p[k]), m));
            mass[all.indexOf(Math.min(...all))] += w;
        });
        assert.ok(Math.abs(rows[0][0] - 100 * mass[0]) < 0.6, `${rows[0]} ${mass}`);
        assert.ok(Math.abs(rows[0][1] - 100 * law.w[0]) < 0.6);
    }
    await v.locator(".glance-head a").nth(2).click();
    assert.equal(await text(v, "#scene-number"), "3 / 3");
    // Without a true distribution there is nothing to compare with.
    const bare = copyOf(shown);
    for (const scene of bare.scenes) scene.law = null;
    const name = "bare.html";
    await writeFile(name, (await readFile(new URL(view), "utf8")).replace(
        /(id="scene-data">)[^]*?(<\/script>)/, (all, x, y) => x + JSON.stringify(bare) + y));
    await v.goto(address(name));
    assert.equal(await v.isVisible("#glance"), false);
    assert.equal(await count(v, ".panel"), 1);
    await v.close();
});

await browser.close();
console.log(`page.mjs: ${passed()} passed${process.exitCode ? ", some failed" : ""}`);
