/* glance.js - the first scenes of a page at a glance: a model's futures next to the true distribution
 * and what happened, and the probabilities of the true modes. A click opens the scene in the browser.
 */
(() => {
    "use strict";
    const {
        decode, maneuver, MANEUVERS, percent, distance, svg, html, windowOf, d, drawMap, drawDraws, drawUser,
        spreadLabels, drawScale,
    } = sceneKit;
    const section = document.getElementById("glance"), box = document.getElementById("glances");
    const source = document.getElementById("scene-data");
    if (!section || !source) return;
    const data = JSON.parse(source.textContent);
    const SIZE = 440, MOST = 6;
    const model = Math.max(0, (data.models || []).findIndex((m) => m.arm === "pretrained"));

    const picture = (card, title, w, s) => {
        const figure = html("figure", "glance-picture", card);
        html("figcaption", "", figure, title);
        const g = svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": title }, figure);
        svg("rect", { class: "ground", width: SIZE, height: SIZE }, g);
        drawMap(g, w, s, false);
        const at = data.obs - 1;
        for (const { small, track } of s.others)
            for (const { start, points, heading } of track)
                if (at >= start && at < start + points.length)
                    drawUser(g, w, points[at - start], heading[at - start], small, "other");
        return g;
    };
    const drawFocal = (g, w, s) => {
        for (const { points } of s.past) svg("path", { class: "past", d: d(w, points) }, g);
        const last = s.past[s.past.length - 1];
        const small = !/^(vehicle|bus)$/.test(s.type);
        drawUser(g, w, [0, 0], last ? last.heading[last.heading.length - 1] : 0, small, "focal");
    };

    /* Lines by weight, heavy ones on top, with the weight next to the end. */
    const drawLines = (g, w, f, colorOf, textOf) => {
        const most = Math.max(...f.w, 1e-9), labels = [];
        const order = f.w.map((_, k) => k).sort((a, b) => f.w[a] - f.w[b]);
        for (const k of order) {
            const path = [[0, 0], ...f.p[k]], opacity = 0.3 + 0.65 * f.w[k] / most;
            svg("path", { class: "line " + colorOf(k), d: d(w, path), opacity: opacity.toFixed(2),
                "stroke-width": Math.min(2 + 10 * f.w[k], 7).toFixed(1) }, g);
        }
        for (const k of order) {
            const [x, y] = w.at(f.p[k][f.p[k].length - 1]);
            const end = svg("g", { class: "branch " + colorOf(k) }, g);
            svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: 4 + 4 * Math.sqrt(f.w[k]) }, end);
            if (f.w[k] < 0.03) continue;
            const text = textOf(k), width = 9.2 * text.length, fits = x + 10 + width < SIZE - 4;
            labels.push({ x: fits ? x + 10 : Math.max(4, x - 10 - width), y: y + 5, text, width });
        }
        spreadLabels(labels, SIZE);
        for (const l of labels)
            svg("text", { class: "weight", x: l.x.toFixed(1), y: l.y.toFixed(1) }, g)
                .textContent = l.text;
    };

    /* Probabilities of the true modes, and the forecast's: each of its futures counts for the true mode
     * it is closest to. */
    const far = (a, b) => a.reduce((sum, p, t) => sum + distance(p, b[t]) ** 2, 0);
    const compare = (f, law) => {
        const rows = law.w.map((w, m) => ({ name: law.n[m], true: w, forecast: 0 }));
        f.w.forEach((w, k) => {
            const all = law.p.map((path) => far(f.p[k], path));
            rows[all.indexOf(Math.min(...all))].forecast += w;
        });
        return rows.filter((r) => r.true >= 0.005 || r.forecast >= 0.005);
    };
    const drawBars = (card, f, law) => {
        const table = html("div", "glance-bars", card);
        for (const row of compare(f, law)) {
            html("span", "name", table, row.name);
            const bars = html("span", "bars", table);
            html("i", "forecast", bars).style.width = (100 * row.forecast).toFixed(1) + "%";
            html("i", "true", bars).style.width = (100 * row.true).toFixed(1) + "%";
            html("span", "numbers", table, `${percent(row.forecast)}, truly ${percent(row.true)}`);
        }
    };

    /* Scenes whose forecast has several maneuvers come first; nothing else decides. */
    const several = (f) => MANEUVERS.filter((m) =>
        f.w.reduce((sum, w, k) => sum + (maneuver(f.p[k]) === m ? w : 0), 0) >= 0.05).length > 1;
    const candidates = [];
    (data.scenes || []).forEach((raw, i) => {
        const f = raw.law && decode(raw).forecasts[model];
        if (f) candidates.push({ raw, i, rank: several(f) ? 0 : 1 });
    });
    const chosen = candidates.sort((a, b) => a.rank - b.rank || a.i - b.i).slice(0, MOST);
    chosen.sort((a, b) => a.i - b.i).forEach(({ raw, i }) => {
        const s = { ...decode(raw), type: raw.type };
        const f = s.forecasts[model], points = [[0, 0]];
        for (const stretch of s.past) points.push(...stretch.points.slice(-20));
        f.p.forEach((path, k) => { if (f.w[k] >= 0.02) points.push(...path); });
        s.law.p.forEach((path, m) => { if (s.law.w[m] >= 0.02) points.push(...path); });
        if (s.future) points.push(...s.future.points);
        const w = windowOf(points, SIZE);
        const card = html("article", "browser glance", box);
        const head = html("div", "glance-head", card);
        html("strong", "", head, `Scene ${i + 1}`);
        html("span", "soft", head, ` ${raw.type.replace(/_/g, " ")} at ${raw.speed.toFixed(1)} m/s`);
        const open = html("a", "", head, "open");
        open.href = "#scenes";
        open.setAttribute("aria-label", `Open scene ${i + 1} in the scene browser`);
        open.addEventListener("click", () =>
            document.dispatchEvent(new CustomEvent("bjepa-scene", { detail: i })));

        const left = picture(card, "forecast", w, s);
        drawFocal(left, w, s);
        drawLines(left, w, f, (k) => "k" + k % 6, (k) => percent(f.w[k]));
        drawScale(left, w);
        const right = picture(card, "true distribution", w, s);
        drawDraws(right, w, s.law);
        drawFocal(right, w, s);
        drawLines(right, w, s.law, () => "kt", (k) => `${s.law.n[k]} ${percent(s.law.w[k])}`);
        if (s.future) {
            svg("path", { class: "future-halo", d: d(w, [[0, 0], ...s.future.points]) }, right);
            svg("path", { class: "future", d: d(w, [[0, 0], ...s.future.points]) }, right);
        }
        drawBars(card, f, s.law);
    });
    section.hidden = !chosen.length;
})();
