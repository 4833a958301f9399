/* scene.js - scenes of the embedded data: decoding them, what their futures mean, drawing them. It
 * knows nothing of panels and buttons, which are browser.js. docs/REPORT.md describes the data.
 *
 * Scenes are drawn with the direction of travel up: a point (x ahead, y left) of the scene's frame
 * goes to the screen as (-y, -x). The window of a scene follows from what was known and predicted
 * alone; what happened widens it only once it is revealed.
 */
const sceneKit = (() => {
    "use strict";

    /* ------------------------------------------------------------------------------------ data */

    /* [x,y,dx,dy,...] in centimeters as [[x,y],...] in meters. */
    const unpack = (line) => {
        const points = [];
        let x = 0, y = 0;
        for (let i = 0; i + 1 < line.length; i += 2) {
            x += line[i];
            y += line[i + 1];
            points.push([x / 100, y / 100]);
        }
        return points;
    };
    const unpackTrack = (track) => track.map(([start, line, heading]) =>
        ({ start, points: unpack(line), heading }));

    /* A scene of the data, decoded. */
    const decode = (raw) => ({
        areas: raw.area.map(unpack),
        lanes: raw.lane.map(([kind, line]) => ({ kind, points: unpack(line) })),
        past: unpackTrack(raw.past),
        others: raw.others.map(([small, track]) => ({ small, track: unpackTrack(track) })),
        forecasts: raw.forecast.map((f) => f && { w: f.w, p: f.p.map(unpack) }),
        future: raw.future && { points: unpack(raw.future.p), seen: raw.future.seen },
        law: raw.law && { w: raw.law.w, n: raw.law.n, p: raw.law.p.map(unpack),
            draws: (raw.law.d || []).map(unpack) },
    });

    /* As the metrics decode it: where a future ends, seen from the start. */
    const maneuver = (path) => {
        const [x, y] = path[path.length - 1];
        if (Math.hypot(x, y) < 2) return "stop";
        const degrees = Math.atan2(y, x) * 180 / Math.PI;
        return degrees >= 30 ? "left" : degrees <= -30 ? "right" : "straight";
    };
    const MANEUVERS = ["stop", "straight", "left", "right"];
    const percent = (w) =>
        w > 0 && w < 0.0005 ? "<0.1\u2009%" : (100 * w).toFixed(w < 0.0995 ? 1 : 0) + "\u2009%";
    const distance = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
    const rms = (a, b) =>
        Math.sqrt(a.reduce((sum, p, t) => sum + distance(p, b[t]) ** 2, 0) / a.length);
    const energyScore = (f, y) => {
        let score = 0;
        f.w.forEach((w, k) => {
            score += w * rms(f.p[k], y);
            f.w.forEach((v, l) => { score -= 0.5 * w * v * rms(f.p[k], f.p[l]); });
        });
        return score;
    };

    /* --------------------------------------------------------------------------------- drawing */

    const NS = "http://www.w3.org/2000/svg";
    const svg = (name, attributes, parent) => {
        const e = document.createElementNS(NS, name);
        for (const key in attributes) e.setAttribute(key, attributes[key]);
        if (parent) parent.append(e);
        return e;
    };
    const html = (name, className, parent, text) => {
        const e = document.createElement(name);
        if (className) e.className = className;
        if (text !== undefined) e.textContent = text;
        if (parent) parent.append(e);
        return e;
    };

    /* A square window around points of the scene's frame, in meters. */
    const windowOf = (points, size) => {
        let x0 = -8, x1 = 8, y0 = -8, y1 = 8;
        for (const [x, y] of points) {
            x0 = Math.min(x0, x);
            x1 = Math.max(x1, x);
            y0 = Math.min(y0, y);
            y1 = Math.max(y1, y);
        }
        const side = Math.max(46, 1.16 * Math.max(x1 - x0, y1 - y0) + 6);
        const scale = size / side, cx = (x0 + x1) / 2, cy = (y0 + y1) / 2;
        return {
            scale,
            size,
            at: ([x, y]) => [size / 2 - (y - cy) * scale, size / 2 - (x - cx) * scale],
        };
    };

    const blindPoints = (s) => {
        const points = [];
        for (const stretch of s.past) points.push(...stretch.points.slice(-20));
        for (const f of s.forecasts)
            if (f) f.p.forEach((path, k) => { if (f.w[k] >= 0.02) points.push(...path); });
        return points;
    };
    const chooseWindow = (s, revealed, law, size) => {
        if (!s.blind) s.blind = blindPoints(s);
        let points = s.blind;
        if (revealed && s.future) points = points.concat(s.future.points);
        if (law && s.law)
            points = points.concat(s.law.p.filter((_, m) => s.law.w[m] >= 0.02).flat());
        return windowOf(points, size);
    };

    const d = (w, points, closed) =>
        points.map((p, i) => {
            const [x, y] = w.at(p);
            return (i ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1);
        }).join("") + (closed ? "Z" : "");

    /* Draws from the true distribution: where many lie on each other, a future is likely. */
    const drawDraws = (g, w, law) => {
        for (const path of law.draws) svg("path", { class: "draw", d: d(w, [[0, 0], ...path]) }, g);
    };

    const drawMap = (g, w, s, thumb) => {
        const rings = s.areas.map((ring) => d(w, ring, true)).join("");
        if (rings) {
            if (!thumb) svg("path", { class: "edge", d: rings }, g);
            svg("path", { class: "area", d: rings }, g);
        }
        for (const kind of [0, 1, 2]) {
            const lines = s.lanes.filter((l) => l.kind === kind);
            if (!lines.length || (thumb && kind === 2)) continue;
            svg("path", {
                class: ["lane", "lane inner", "cross"][kind],
                d: lines.map((l) => d(w, l.points)).join(""),
            }, g);
        }
    };

    /* Where a track is at step `at`, which may lie between two; undefined where nobody was seen. */
    const stateAt = (track, at) => {
        for (const { start, points, heading } of track) {
            const i = at - start;
            if (i < 0 || i > points.length - 1) continue;
            const a = Math.floor(i), b = Math.min(a + 1, points.length - 1), f = i - a;
            return {
                point: [points[a][0] + f * (points[b][0] - points[a][0]),
                    points[a][1] + f * (points[b][1] - points[a][1])],
                heading: heading[Math.round(i)],
            };
        }
        return undefined;
    };
    const pointAt = (path, step) => {
        const i = Math.max(0, Math.min(step, path.length - 1));
        const a = Math.floor(i), b = Math.min(a + 1, path.length - 1), f = i - a;
        return [path[a][0] + f * (path[b][0] - path[a][0]), path[a][1] + f * (path[b][1] - path[a][1])];
    };

    /* A car of true size that points ahead, or a dot for smaller road users. */
    const drawUser = (g, w, point, heading, small, className) => {
        const [x, y] = w.at(point);
        if (small) {
            svg("circle", { class: className + " small", cx: x.toFixed(1), cy: y.toFixed(1),
                r: Math.max(3.5, 0.6 * w.scale).toFixed(1) }, g);
            return;
        }
        const length = Math.max(11, 4.6 * w.scale), width = Math.max(5, 2 * w.scale);
        const user = svg("g", { transform:
            `translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(${(-heading - 90).toFixed(1)})` }, g);
        svg("rect", { class: className, x: (-length / 2).toFixed(1), y: (-width / 2).toFixed(1),
            width: length.toFixed(1), height: width.toFixed(1), rx: (width / 3).toFixed(1) }, user);
        svg("path", { class: "nose", d: `M${(length * 0.14).toFixed(1)} ${(-width * 0.3).toFixed(1)}` +
            `L${(length * 0.34).toFixed(1)} 0L${(length * 0.14).toFixed(1)} ${(width * 0.3).toFixed(1)}` },
        user);
    };

    /* Moves labels next to the ends of lines apart where they would overlap. A label may have a
     * width in pixels. */
    const spreadLabels = (labels, size) => {
        labels.sort((a, b) => a.y - b.y || a.x - b.x);
        for (let round = 0; round < 60; round++)
            for (let i = 0; i < labels.length; i++)
                for (let j = i + 1; j < labels.length; j++) {
                    const overlap = 19 - (labels[j].y - labels[i].y);
                    const first = labels[i].x <= labels[j].x ? labels[i] : labels[j];
                    const apart = Math.abs(labels[j].x - labels[i].x);
                    if (overlap <= 0 || apart > (first.width || 58) + 4) continue;
                    labels[i].y -= overlap / 2;
                    labels[j].y += overlap / 2;
                }
        for (const l of labels) {
            l.y = Math.max(16, Math.min(size - 8, l.y));
            l.x = Math.min(size - (l.width || 58), l.x);
        }
    };

    const drawScale = (g, w) => {
        const most = w.size / 4 / w.scale;
        const power = 10 ** Math.floor(Math.log10(most));
        const length = [5, 2, 1].map((m) => m * power).find((m) => m <= most);
        const x = 18, y = w.size - 18, px = length * w.scale;
        svg("path", { class: "scale", d: `M${x} ${y - 5}v5h${px.toFixed(1)}v-5` }, g);
        svg("text", { class: "small", x: x + px / 2, y: y - 9, "text-anchor": "middle" }, g)
            .textContent = length + " m";
    };

    return {
        decode, maneuver, MANEUVERS, percent, distance, energyScore, svg, html, windowOf, blindPoints,
        chooseWindow, d, drawMap, drawDraws, stateAt, pointAt, drawUser, spreadLabels, drawScale,
    };
})();
