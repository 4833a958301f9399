/* browser.js - the scene browser: two panels side by side, small pictures, time, hindsight and law.
 * No framework, nothing fetched; texts of others enter as text, never as markup.
 */
(() => {
    "use strict";
    const {
        decode, maneuver, MANEUVERS, percent, distance, energyScore, svg, html, windowOf, blindPoints,
        chooseWindow, d, drawMap, drawDraws, stateAt, pointAt, drawUser, spreadLabels, drawScale,
    } = sceneKit;
    const $ = (id) => document.getElementById(id);
    const source = $("scene-data"), browser = $("browser");
    if (!source || !browser) return;
    const data = JSON.parse(source.textContent);
    if (!data.scenes || !data.scenes.length) return;

    const SECONDS = data.fut * data.dt, PAST = data.obs * data.dt;
    const THUMB = 600; /* of a small picture's coordinates */
    let size = 600;    /* of a panel's: fewer on a phone, where text would get too small */

    const scenes = data.scenes.map((raw) => ({ raw }));
    const sceneAt = (i) => {
        if (!scenes[i].lanes) Object.assign(scenes[i], decode(scenes[i].raw));
        return scenes[i];
    };

    /* ---------------------------------------------------------------------------------- panels */

    const state = { scene: 0, t: SECONDS, playing: false, revealed: false, law: false };
    const arms = [];
    data.models.forEach((m, index) => {
        let arm = arms.find((a) => a.arm === m.arm);
        if (!arm) arms.push(arm = { arm: m.arm, title: m.title, models: [] });
        arm.models.push({ index, seed: m.seed });
    });
    /* The true distribution of simulated scenes can be chosen like a model. */
    const TRUE = "true-distribution";
    const hasLaw = data.scenes.some((s) => s.law);
    if (hasLaw) arms.push({ arm: TRUE, title: "true distribution", models: [{ index: TRUE, seed: null }] });
    const forecastOf = (s, model) => (model.index === TRUE ? s.law : s.forecasts[model.index]);
    const armNamed = (...names) => names.map((n) => arms.find((a) => a.arm === n)).find((a) => a);
    const panels = [];

    const option = (select, value, text) => {
        const o = html("option", "", select, text);
        o.value = value;
    };

    function makePanel(number, arm, modelNumber) {
        const p = { number, arm, model: arm.models[modelNumber], pinned: -1, hover: -1 };
        const box = html("div", "panel", $("panels"));
        const head = html("div", "panel-head", box);
        const side = ["left", "right"][number];
        if (data.models.length > 1) {
            const label = html("label", "", head);
            html("span", "sr", label, `Model of the ${side} panel`);
            p.armSelect = html("select", "arm", label);
            arms.forEach((a, i) => option(p.armSelect, i, a.title));
            p.armSelect.addEventListener("change", () => {
                const seed = p.model.seed;
                p.arm = arms[p.armSelect.value];
                p.model = p.arm.models.find((m) => m.seed === seed) || p.arm.models[0];
                p.pinned = -1;
                fillSeeds(p);
                draw();
            });
        } else {
            html("strong", "", head, arm.title);
        }
        if (arms.some((a) => a.models.length > 1)) {
            const label = html("label", "", head);
            html("span", "sr", label, `Seed of the ${side} panel`);
            p.seedSelect = html("select", "seed", label);
            p.seedSelect.addEventListener("change", () => {
                p.model = p.arm.models[p.seedSelect.value];
                p.pinned = -1;
                draw();
            });
        }
        p.summary = html("span", "soft summary", head);
        p.stage = html("div", "stage", box);
        p.stage.tabIndex = 0;
        p.stage.setAttribute("role", "group");
        p.stage.setAttribute("aria-label", "Picture of the scene; space bar plays");
        p.svg = svg("svg", { viewBox: "0 0 1 1", role: "img" }, p.stage);
        p.tip = html("div", "tip", p.stage);
        p.tip.hidden = true;
        p.list = html("ol", "branches", box);
        p.foot = html("p", "foot soft", box);
        panels.push(p);
        fillSeeds(p);
    }

    function fillSeeds(p) {
        if (p.armSelect) p.armSelect.value = arms.indexOf(p.arm);
        if (!p.seedSelect) return;
        p.seedSelect.parentElement.hidden = p.model.seed === null;
        p.seedSelect.replaceChildren();
        p.arm.models.forEach((m, i) => option(p.seedSelect, i, "seed " + m.seed));
        p.seedSelect.value = p.arm.models.indexOf(p.model);
    }

    /* Modes of the true distribution have names, branches of a model have the maneuver they end in. */
    const nameOf = (f, k) => (f.n ? f.n[k] : maneuver(f.p[k]));
    const describe = (f, k) => `${f.n ? "Mode" : "Branch"} ${k + 1}: ${percent(f.w[k])}, ${nameOf(f, k)}`;
    const colorOf = (k, f) => (f && f.n ? "kt" : "k" + k % 6);

    const showsLaw = () => panels.some((p) => p.model.index === TRUE);

    function drawPanel(p) {
        const s = sceneAt(state.scene), f = forecastOf(s, p.model);
        const w = p.window = chooseWindow(s, state.revealed, state.law || showsLaw(), size);
        p.svg.setAttribute("viewBox", `0 0 ${size} ${size}`);
        p.svg.replaceChildren();
        svg("rect", { class: "ground", width: size, height: size }, p.svg);
        drawMap(svg("g", {}, p.svg), w, s, false);
        p.lawLayer = svg("g", { class: "law-layer" }, p.svg);
        p.otherLayer = svg("g", {}, p.svg);
        p.pastLayer = svg("g", {}, p.svg);
        p.branchLayer = svg("g", { class: "branch-layer" }, p.svg);
        p.focalLayer = svg("g", {}, p.svg);
        p.futureLayer = svg("g", {}, p.svg);
        p.endLayer = svg("g", { class: "branch-layer" }, p.svg);
        p.labelLayer = svg("g", {}, p.svg);
        drawScale(p.svg, w);
        if (f && f.draws) drawDraws(p.lawLayer, w, f);
        else if (state.law && s.law) drawLaw(p, w, s.law);
        p.branches = [];
        if (f) drawBranches(p, w, f);
        if (state.revealed && s.future) drawFuture(p, w, s.future);
        drawList(p, s, f);
        drawTime(p);
        const what = p.arm.title + (p.model.seed === null ? "" : ", seed " + p.model.seed);
        p.svg.setAttribute("aria-label", f
            ? `${what}: ` + f.w.map((_, k) => describe(f, k)).join("; ") : `${what}: no forecast`);
    }

    function drawLaw(p, w, law) {
        const labels = [];
        law.p.forEach((path, m) => {
            const line = svg("path", { class: "law", d: d(w, [[0, 0], ...path]),
                "stroke-width": (5 + 26 * law.w[m]).toFixed(1) }, p.lawLayer);
            svg("title", {}, line).textContent =
                `true mode ${m + 1}: ${percent(law.w[m])}, ${law.n[m]}`;
            const [x, y] = w.at(path[path.length - 1]);
            if (law.w[m] >= 0.02) labels.push({ x: x - 58, y: y - 16, text:
                `truly ${law.n[m]} ${percent(law.w[m])}` });
        });
        spreadLabels(labels, size);
        for (const l of labels)
            svg("text", { class: "law-label", x: Math.max(6, l.x).toFixed(1), y: l.y.toFixed(1) },
                p.labelLayer).textContent = l.text;
    }

    function drawBranches(p, w, f) {
        const most = Math.max(...f.w, 1e-9);
        const order = f.w.map((_, k) => k).sort((a, b) => f.w[a] - f.w[b]); /* heavy ones on top */
        for (const k of order) {
            const strength = f.w[k] / most, path = [[0, 0], ...f.p[k]];
            const g = svg("g", { class: "branch " + colorOf(k, f), "data-k": k }, p.branchLayer);
            const b = { k, g, path, w: f.w[k], opacity: 0.28 + 0.67 * strength };
            const width = Math.min(1.5 + 9 * f.w[k], 6.5).toFixed(2);
            b.rest = svg("path", { class: "line", d: d(w, path), "stroke-width": width }, g);
            b.line = svg("path", { class: "line", "stroke-width": width,
                opacity: b.opacity.toFixed(2) }, g);
            svg("path", { class: "hit", d: d(w, path) }, g);
            p.branches.push(b);
        }
        for (const b of p.branches) { /* above all lines, so that none covers an end */
            const k = b.k, g = svg("g", { class: "branch " + colorOf(k, f), "data-k": k }, p.endLayer);
            b.end = g;
            b.mark = svg("g", { opacity: Math.max(0.7, b.opacity).toFixed(2) }, g);
            svg("circle", { r: (8 + 4 * Math.sqrt(f.w[k])).toFixed(1) }, b.mark);
            svg("text", { class: "mark", y: 4.5, "text-anchor": "middle" }, b.mark)
                .textContent = k + 1;
            for (const part of [b.g, g]) {
                part.addEventListener("pointerenter", (e) => hover(p, k, e));
                part.addEventListener("pointermove", (e) => hover(p, k, e));
                part.addEventListener("pointerleave", () => hover(p, -1));
                part.addEventListener("click", () => pin(p, k));
            }
        }
    }

    function drawFuture(p, w, future) {
        svg("path", { class: "future-halo", d: d(w, [[0, 0], ...future.points]) }, p.futureLayer);
        const line = svg("path", { class: "future", d: d(w, [[0, 0], ...future.points]) },
            p.futureLayer);
        svg("title", {}, line).textContent = "true future (hindsight)";
        p.futureMark = svg("g", {}, p.futureLayer);
    }

    /* What depends on the time alone. */
    function drawTime(p) {
        const s = sceneAt(state.scene), w = p.window, t = state.t, step = t / data.dt;
        const last = data.obs - 1, at = Math.min(last, Math.max(0, last + step));
        p.otherLayer.replaceChildren();
        p.pastLayer.replaceChildren();
        for (const { small, track } of s.others) {
            for (const { points } of track)
                svg("path", { class: "track" + (small ? " small" : ""), d: d(w, points) },
                    p.otherLayer);
            const now = stateAt(track, at);
            if (now) drawUser(p.otherLayer, w, now.point, now.heading, small,
                t > 0.05 ? "other stale" : "other");
        }
        for (const { points } of s.past) svg("path", { class: "past", d: d(w, points) }, p.pastLayer);
        const focal = stateAt(s.past, at) || stateAt(s.past, last);
        const isSmall = !/^(vehicle|bus)$/.test(s.raw.type);
        p.focalLayer.replaceChildren();
        if (focal) drawUser(p.focalLayer, w, focal.point, focal.heading, isSmall, "focal");

        const whole = t >= SECONDS - 1e-9, labels = [];
        for (const b of p.branches) {
            const upTo = Math.max(0, Math.min(step, data.fut));
            const here = pointAt(b.path, upTo), full = Math.floor(upTo);
            b.line.setAttribute("d", d(w, [...b.path.slice(0, full + 1), here]));
            b.rest.setAttribute("opacity", whole ? 0 : (0.3 * b.opacity).toFixed(2));
            const [x, y] = w.at(here);
            b.mark.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
            b.mark.style.display = t > 0 ? "" : "none";
            if (t >= 2) labels.push({ x: x + 13, y: y + 5, b });
        }
        spreadLabels(labels, size);
        p.labelLayer.querySelectorAll(".weight").forEach((e) => e.remove());
        for (const l of labels) {
            const text = svg("text", { class: "weight", x: l.x.toFixed(1), y: l.y.toFixed(1),
                opacity: Math.max(0.75, l.b.opacity).toFixed(2), "data-k": l.b.k }, p.labelLayer);
            text.textContent = percent(l.b.w);
        }
        if (state.revealed && s.future && p.futureMark) {
            p.futureMark.replaceChildren();
            const path = [[0, 0], ...s.future.points], i = Math.max(0, Math.min(step, data.fut));
            const a = pointAt(path, Math.max(0, i - 4)), b = pointAt(path, i);
            const heading = distance(a, b) > 0.2
                ? Math.atan2(b[1] - a[1], b[0] - a[0]) * 180 / Math.PI : focal ? focal.heading : 0;
            if (t > 0) drawUser(p.futureMark, w, b, heading, isSmall, "happened");
        }
        mark(p);
    }

    function drawList(p, s, f) {
        p.list.replaceChildren();
        p.rows = [];
        p.summary.textContent = f ? "" : "no forecast for this scene";
        p.foot.textContent = "";
        if (!f) return;
        const order = f.w.map((_, k) => k).sort((a, b) => f.w[b] - f.w[a] || a - b);
        for (const k of order) {
            const item = html("li", "", p.list);
            const row = html("button", "row " + colorOf(k, f), item);
            row.type = "button";
            row.setAttribute("aria-pressed", p.pinned === k);
            html("span", "dot", row, k + 1);
            const bar = html("span", "meter", row);
            html("span", "fill", bar).style.width = (100 * f.w[k]).toFixed(1) + "%";
            html("span", "value", row, percent(f.w[k]));
            html("span", "maneuver", row, nameOf(f, k));
            const end = f.p[k][f.p[k].length - 1];
            let far = `${Math.hypot(end[0], end[1]).toFixed(0)} m away`;
            if (state.revealed && s.future)
                far = `${distance(end, s.future.points[s.future.points.length - 1]).toFixed(1)} m off`;
            html("span", "far soft", row, far);
            row.setAttribute("aria-label", describe(f, k) +
                `, ends ${far}${state.revealed && s.future ? " in hindsight" : ""}`);
            row.addEventListener("pointerenter", () => hover(p, k));
            row.addEventListener("pointerleave", () => hover(p, -1));
            row.addEventListener("focus", () => hover(p, k));
            row.addEventListener("blur", () => hover(p, -1));
            row.addEventListener("click", () => pin(p, k));
            p.rows[k] = row;
        }
        const sums = MANEUVERS.map((m) =>
            f.w.reduce((sum, w, k) => sum + (maneuver(f.p[k]) === m ? w : 0), 0));
        p.foot.textContent = "In all: " + MANEUVERS.map((m, i) => [sums[i], m])
            .filter(([w]) => w > 0.0005).sort((a, b) => b[0] - a[0])
            .map(([w, m]) => `${m} ${percent(w)}`).join(", ");
        if (state.revealed && s.future)
            p.foot.textContent += `. True future: ${maneuver(s.future.points)}` + (f.n ? "."
                : `; Energy Score of this scene ${energyScore(f, s.future.points).toFixed(2)} m.`);
    }

    /* ------------------------------------------------------------------------ hover and choice */

    function mark(p) {
        const chosen = p.hover >= 0 ? p.hover : p.pinned;
        p.branchLayer.classList.toggle("picked", chosen >= 0);
        p.endLayer.classList.toggle("picked", chosen >= 0);
        for (const b of p.branches)
            for (const part of [b.g, b.end]) part.classList.toggle("on", b.k === chosen);
        for (const e of p.labelLayer.querySelectorAll(".weight"))
            e.classList.toggle("off", chosen >= 0 && +e.dataset.k !== chosen);
        (p.rows || []).forEach((row, k) => row && row.classList.toggle("on", k === chosen));
    }

    function hover(p, k, event) {
        p.hover = k;
        const f = forecastOf(sceneAt(state.scene), p.model);
        p.tip.hidden = !(k >= 0 && event && f);
        if (!p.tip.hidden) {
            const box = p.stage.getBoundingClientRect();
            const x = event.clientX - box.left, y = event.clientY - box.top;
            p.tip.textContent = describe(f, k);
            p.tip.classList.toggle("flip", x > box.width * 0.6);
            p.tip.style.left = x + "px";
            p.tip.style.top = Math.max(34, y) + "px";
        }
        mark(p);
    }

    function pin(p, k) {
        p.pinned = p.pinned === k ? -1 : k;
        p.rows.forEach((row, i) => row && row.setAttribute("aria-pressed", i === p.pinned));
        mark(p);
    }

    /* ---------------------------------------------------------------------------------- thumbs */

    function makeThumbs() {
        scenes.forEach((_, i) => {
            const b = html("button", "thumb", $("strip"));
            b.type = "button";
            b.tabIndex = -1;
            const s = sceneAt(i), f = s.forecasts.find((x) => x);
            b.setAttribute("aria-label",
                `Scene ${i + 1} of ${scenes.length}: ${s.raw.type} in ${s.raw.city}, ${s.raw.id}`);
            b.title = s.raw.id;
            const picture = svg("svg", { viewBox: `0 0 ${THUMB} ${THUMB}`, "aria-hidden": "true" }, b);
            const w = windowOf(blindPoints(s), THUMB);
            svg("rect", { class: "ground", width: THUMB, height: THUMB }, picture);
            drawMap(picture, w, s, true);
            if (f) {
                const most = Math.max(...f.w, 1e-9);
                f.p.forEach((path, k) => svg("path", { class: "line " + colorOf(k),
                    d: d(w, [[0, 0], ...path.filter((_, t) => t % 6 === 5)]),
                    "stroke-width": 10 + 26 * f.w[k],
                    opacity: (0.3 + 0.65 * f.w[k] / most).toFixed(2) }, picture));
            }
            drawUser(picture, { ...w, scale: Math.max(w.scale, 16) }, [0, 0], 0, false, "focal");
            b.addEventListener("click", () => go(i));
            scenes[i].thumb = b;
        });
    }

    /* --------------------------------------------------------------------------------- control */

    function draw() {
        const s = sceneAt(state.scene), r = s.raw;
        size = panels[0].stage.clientWidth < 460 ? 400 : 600;
        for (const p of panels) drawPanel(p);
        $("scene-title").textContent = r.id;
        $("scene-facts").textContent =
            `${r.city} \u00b7 ${r.type.replace(/_/g, " ")} at ${r.speed.toFixed(1)} m/s \u00b7 ` +
            `${r.others.length} other road user${r.others.length === 1 ? "" : "s"}`;
        $("scene-number").textContent = `${state.scene + 1} / ${scenes.length}`;
        const reveal = $("reveal"), law = $("law");
        reveal.disabled = !s.future;
        reveal.setAttribute("aria-pressed", state.revealed);
        reveal.textContent = !s.future ? "The true future is unknown"
            : state.revealed ? "Hide the true future" : "Reveal the true future (hindsight)";
        law.hidden = $("key-law").hidden = !s.law;
        law.setAttribute("aria-pressed", state.law);
        law.textContent = state.law ? "Hide the true distribution" : "Show the true distribution";
        $("legend-future").hidden = !state.revealed;
        $("legend-law").hidden = !(state.law && s.law);
        $("legend-draws").hidden = !(showsLaw() && s.law);
        const gaps = s.future ? s.future.seen.filter((x) => !x).length : 0;
        $("notice").textContent = state.revealed
            ? "Hindsight: the true future was not available to the model." +
              (gaps ? ` ${gaps} of its steps were not observed and are interpolated.` : "") : "";
        $("notice").classList.toggle("shown", state.revealed);
        sayTime();
    }

    function go(i) {
        state.scene = (i + scenes.length) % scenes.length;
        state.revealed = false; /* hindsight is asked for anew at every scene */
        state.t = SECONDS;
        stop();
        for (const p of panels) {
            p.pinned = p.hover = -1;
            p.tip.hidden = true;
        }
        scenes.forEach((s, k) => {
            const current = k === state.scene;
            s.thumb.tabIndex = current ? 0 : -1;
            if (current) s.thumb.setAttribute("aria-current", "true");
            else s.thumb.removeAttribute("aria-current");
        });
        const thumb = scenes[state.scene].thumb, strip = $("strip");
        if (strip.contains(document.activeElement)) thumb.focus({ preventScroll: true });
        strip.scrollTo({ left: thumb.offsetLeft - strip.clientWidth / 2 + thumb.offsetWidth / 2 });
        draw();
    }

    function sayTime() {
        const t = state.t;
        $("time").value = t;
        $("clock").textContent = (t < 0 ? "\u2212" : "+") + Math.abs(t).toFixed(1) + " s";
        $("time").setAttribute("aria-valuetext", Math.abs(t) < 0.05 ? "now"
            : `${Math.abs(t).toFixed(1)} seconds ${t < 0 ? "ago" : "ahead"}`);
    }

    function setTime(t) {
        state.t = Math.max(-PAST + data.dt, Math.min(SECONDS, t));
        for (const p of panels) drawTime(p);
        sayTime();
    }

    function stop() {
        state.playing = false;
        const b = $("play");
        b.setAttribute("aria-pressed", "false");
        b.querySelector(".word").textContent = "Play";
        b.querySelector(".icon path").setAttribute("d", "M2 1v10l9-5z");
    }

    function play() {
        if (state.playing) {
            stop();
            return;
        }
        state.playing = true;
        const b = $("play");
        b.setAttribute("aria-pressed", "true");
        b.querySelector(".word").textContent = "Pause";
        b.querySelector(".icon path").setAttribute("d", "M1 1h4v10h-4zM7 1h4v10h-4z");
        if (state.t >= SECONDS) setTime(0);
        let before = performance.now();
        const frame = (now) => {
            if (!state.playing) return;
            setTime(state.t + Math.max(0, now - before) / 1000);
            before = now;
            if (state.t >= SECONDS) stop();
            else requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
    }

    function toggleReveal() {
        if (!sceneAt(state.scene).future) return;
        state.revealed = !state.revealed;
        draw();
    }

    function toggleLaw() {
        if (!sceneAt(state.scene).law) return;
        state.law = !state.law;
        draw();
    }

    let onScreen = false;
    function onKey(e) {
        if (e.ctrlKey || e.metaKey || e.altKey) return;
        const inside = browser.contains(e.target), tag = e.target.tagName;
        const idle = e.target === document.body && onScreen;
        const arrow = e.key === "ArrowLeft" ? -1 : e.key === "ArrowRight" ? 1 : 0;
        if (tag === "SELECT" || !(inside || (idle && arrow))) return;
        if (arrow && tag !== "INPUT") go(state.scene + arrow);
        else if (e.key === " " && (tag !== "BUTTON" || e.target.classList.contains("thumb"))) play();
        else if (e.key === "r" || e.key === "R") toggleReveal();
        else if (e.key === "l" || e.key === "L") toggleLaw();
        else return;
        e.preventDefault();
    }

    document.addEventListener("bjepa-scene", (e) => go(e.detail));

    browser.hidden = false;
    const time = $("time");
    time.min = -PAST + data.dt;
    time.max = SECONDS;
    time.step = data.dt;
    const range = SECONDS + PAST - data.dt;
    browser.querySelector(".ticks .now").style.setProperty("--at", (PAST - data.dt) / range);
    const first = armNamed("pretrained", "fullset") || arms[0];
    const truth = (arms.length === 2 || first.arm === "pretrained") && armNamed(TRUE);
    makePanel(0, first, 0);
    if (data.models.length > 1 || truth) {
        const second = truth || first.arm === "fullset" && armNamed("specialization", "point") ||
            arms.find((a) => a !== first) || first;
        makePanel(1, second, second === first ? 1 : 0);
    }
    $("panels").classList.toggle("single", panels.length === 1);
    makeThumbs();
    $("previous").addEventListener("click", () => go(state.scene - 1));
    $("next").addEventListener("click", () => go(state.scene + 1));
    $("play").addEventListener("click", play);
    time.addEventListener("input", () => {
        stop();
        setTime(+time.value);
    });
    $("reveal").addEventListener("click", toggleReveal);
    $("law").addEventListener("click", toggleLaw);
    addEventListener("resize", () => {
        if ((panels[0].stage.clientWidth < 460 ? 400 : 600) !== size) draw();
    });
    addEventListener("keydown", onKey);
    addEventListener("keyup", (e) => { /* buttons would act on the release of a space we used */
        if (e.key === " " && e.target.classList && e.target.classList.contains("thumb"))
            e.preventDefault();
    });
    new IntersectionObserver((entries) => {
        onScreen = entries[entries.length - 1].isIntersecting;
    }).observe(browser);
    go(0);
})();
