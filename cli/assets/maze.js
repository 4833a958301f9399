/* maze.js - the page of a predicted graph: a chosen cell with its candidates, its successors when
 * they are asked for, and drives by the graph. Nothing is fetched; only numbers enter the picture.
 * A report has several graphs, their pictures in templates, and a predictor to choose.
 */
(() => {
    "use strict";
    const $ = (id) => document.getElementById(id);
    const all = JSON.parse($("scene-data").textContent), graphs = all.graphs || [all];
    if (!graphs.length) return;
    let data = graphs[0], maze = $("maze"), cells = [];
    const UNIT = 48, body = $("candidates").tBodies[0];
    const state = { cell: data.source, revealed: false, drive: 0, at: 0, playing: false };

    const svg = (name, attributes, parent) => {
        const node = document.createElementNS("http://www.w3.org/2000/svg", name);
        for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
        parent.append(node);
        return node;
    };
    const td = (row, text, kind) => {
        const cell = row.insertCell();
        cell.textContent = text;
        if (kind) cell.className = kind;
        return cell;
    };
    const center = (cell) => [(data.cells[cell][1] + .5) * UNIT, (data.cells[cell][0] + .5) * UNIT];
    const kindOf = (from, to) => {
        const edge = data.edges.find(([u, v]) => u === from && v === to);
        return edge ? (edge[2] ? "real" : "false") : "";
    };

    /* ------------------------------------------------------------------------ a cell's candidates */

    function drawMarks() {
        const marks = $("marks"), candidates = data.sources[state.cell] || [];
        marks.replaceChildren();
        if (state.revealed) {
            const list = data.successors[state.cell];
            const most = Math.max(1, ...list.map(([, n]) => n));
            for (const [cell, n] of list) {
                const [x, y] = center(cell);
                const r = data.seen ? 12 + 9 * Math.sqrt(n / most) : 17;
                svg("circle", { class: "m-successor", cx: x, cy: y, r: r.toFixed(1) }, marks);
            }
        }
        candidates.forEach(([cell, cosine], k) => {
            if (cell < 0) return;
            const [x, y] = center(cell), angle = 2 * Math.PI * k / candidates.length - Math.PI / 2;
            const at = `M${(x + 17 * Math.cos(angle)).toFixed(1)} ${(y + 17 * Math.sin(angle) - 5).toFixed(1)}`;
            svg("path", {
                class: cosine > data.threshold ? "m-candidate on" : "m-candidate", d: `${at}l5 9h-10z`,
            }, marks);
        });
    }

    function drawTable() {
        const candidates = data.sources[state.cell] || [];
        const successors = data.successors[state.cell].map(([cell]) => cell);
        body.replaceChildren();
        $("candidates").parentElement.hidden = !candidates.length;
        candidates.forEach(([cell, cosine, mass], k) => {
            const row = body.insertRow();
            const edge = cosine > data.threshold && cell !== state.cell ? kindOf(state.cell, cell) : "";
            row.className = edge ? "on" : "";
            td(row, k + 1);
            td(row, cell < 0 ? "none" : cell);
            td(row, cosine.toFixed(3), "n");
            td(row, mass === null ? "–" : (100 * mass).toFixed(1) + " %", "n");
            const said = state.revealed && successors.includes(cell) && cosine > data.threshold;
            td(row, (edge || "none") + (said ? ", hits a successor" : ""));
        });
    }

    function drawCell() {
        const edges = data.edges.filter(([u]) => u === state.cell);
        const real = edges.filter(([, , r]) => r).length, list = data.successors[state.cell];
        $("cell-title").textContent = `Cell ${state.cell}`;
        $("cell-facts").textContent = `Row ${data.cells[state.cell][0]}, column ${data.cells[state.cell][1]}: ` +
            (edges.length ? `edges to ${edges.map(([, v]) => v).join(", ")}; ${real} of ${edges.length} real. One candidate can give several edges.`
                : "no predicted edges.");
        maze.classList.add("chosen");
        for (const c of cells) {
            const on = +c.dataset.cell === state.cell;
            c.setAttribute("aria-pressed", on);
            c.tabIndex = on ? 0 : -1;
        }
        for (const e of maze.querySelectorAll(".m-edge"))
            e.classList.toggle("from", +e.dataset.from === state.cell);
        $("reveal").setAttribute("aria-pressed", state.revealed);
        $("reveal").textContent = state.revealed ? "Hide the successors" : "Reveal the successors";
        $("legend-successor").hidden = !state.revealed;
        const notice = $("notice");
        notice.classList.toggle("shown", state.revealed);
        notice.textContent = !state.revealed ? "" : !list.length ? "This cell has no successor." :
            (data.seen ? "Successors in the data, with crossings: " : "Successors in the true graph: ") +
            list.map(([v, n]) => data.seen ? `${v} (${n})` : v).join(", ") + ".";
        drawMarks();
        drawTable();
    }

    function choose(cell, focus) {
        state.cell = cell;
        drawCell();
        if (focus) cells[cell].focus();
    }
    const toggleReveal = () => {
        state.revealed = !state.revealed;
        drawCell();
    };
    /* The nearest free square that way, if it is in the same row or column. */
    function step(di, dj) {
        const [i, j] = data.cells[state.cell];
        for (let n = 1; n < 64; n++) {
            const to = data.cells.findIndex(([a, b]) => a === i + n * di && b === j + n * dj);
            if (to >= 0) return choose(to, true);
        }
    }

    $("reveal").addEventListener("click", toggleReveal);
    function onKey(e) {
        const ways = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
        if (e.altKey || e.ctrlKey || e.metaKey) return;
        if (ways[e.key]) step(...ways[e.key]);
        else if (e.key === "r" || e.key === "R") toggleReveal();
        else if (e.key === " ") play();
        else if (e.key !== "Enter") return;
        e.preventDefault();
    }
    /* The picture that is there now. */
    function adopt() {
        maze = $("maze");
        cells = [...maze.querySelectorAll(".m-cell")];
        cells.forEach((c, k) => c.addEventListener("click", () => choose(k, true)));
        maze.addEventListener("keydown", onKey);
    }

    /* ------------------------------------------------------------------------------------ drives */

    const calm = matchMedia("(prefers-reduced-motion: reduce)");
    const points = (drive) => drive.path.length / 2;
    const stepOf = (drive, k) => Math.min(k * drive.every, drive.steps);

    function drawDrive() {
        const route = $("route"), drive = data.drives[state.drive];
        route.replaceChildren();
        if (!drive) return;
        let line = "", jumps = "";
        for (let k = 0; k <= state.at; k++) {
            const x = drive.path[2 * k] * UNIT, y = drive.path[2 * k + 1] * UNIT;
            const far = k && Math.hypot(x - drive.path[2 * k - 2] * UNIT, y - drive.path[2 * k - 1] * UNIT) > UNIT / 2;
            if (far)
                jumps += `M${drive.path[2 * k - 2] * UNIT} ${drive.path[2 * k - 1] * UNIT}L${x} ${y}`;
            line += `${k && !far ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
        }
        svg("path", { class: "m-path", d: line }, route);
        if (jumps) svg("path", { class: "m-jump", d: jumps }, route);
        svg("circle", { class: "m-goal", cx: drive.xy[0] * UNIT, cy: drive.xy[1] * UNIT, r: UNIT / 4 }, route);
        svg("circle", {
            class: "m-ball", cx: drive.path[2 * state.at] * UNIT, cy: drive.path[2 * state.at + 1] * UNIT,
            r: .7 / 4 * UNIT,
        }, route);
        $("time").max = points(drive) - 1;
        $("time").value = state.at;
        $("time").setAttribute("aria-valuetext", `step ${stepOf(drive, state.at)} of ${drive.steps}`);
        $("clock").textContent = `${stepOf(drive, state.at)}`;
    }
    function sayOutcome() {
        const d = data.drives[state.drive];
        $("outcome").textContent = !d ? "This maze has no tasks." :
            `From cell ${d.start} to cell ${d.goal}: ` +
            (d.reached ? `reached after ${d.steps} steps.` : `not reached in ${d.steps} steps.`);
    }
    function setPlaying(on) {
        state.playing = on;
        $("play").setAttribute("aria-pressed", on);
        $("play").querySelector(".word").textContent = on ? "Pause" : "Play";
        $("play").querySelector(".icon path").setAttribute("d",
            on ? "M1 1h4v10h-4zM7 1h4v10h-4z" : "M2 1v10l9-5z");
    }
    let last = 0, carry = 0;
    function frame(now) {
        if (!state.playing) return;
        const drive = data.drives[state.drive];
        /* 60 rows a second: 120 steps, 12 times life. A frame may be dated before the click. */
        carry += Math.max(0, Math.min(100, now - last)) / 1000 * 60;
        last = now;
        const rows = Math.floor(carry);
        carry -= rows;
        state.at = Math.min(points(drive) - 1, state.at + rows);
        if (rows) drawDrive();
        if (state.at === points(drive) - 1) setPlaying(false);
        else requestAnimationFrame(frame);
    }
    function play() {
        const drive = data.drives[state.drive];
        if (!drive) return;
        if (state.playing) return setPlaying(false);
        if (calm.matches) { /* no motion: the whole way at once, and back */
            state.at = state.at === points(drive) - 1 ? 0 : points(drive) - 1;
            return drawDrive();
        }
        if (state.at === points(drive) - 1) state.at = 0;
        setPlaying(true);
        carry = 0;
        last = performance.now();
        requestAnimationFrame(frame);
    }

    /* Another predictor: in the same maze, cell, successors and task stay as they are. */
    function show(k) {
        const [summary, picture] = $(`graph-${k}`).content.cloneNode(true).children;
        const elsewhere = `${graphs[k].cells}` !== `${data.cells}`;
        data = graphs[k];
        setPlaying(false);
        state.at = 0;
        if (elsewhere) {
            state.cell = data.source;
            state.drive = 0;
            listTasks();
        }
        $("summary").replaceChildren(...summary.childNodes);
        $("stage").replaceChildren(...picture.childNodes);
        adopt();
        drawCell();
        drawDrive();
        sayOutcome();
    }
    if ($("predictor")) $("predictor").addEventListener("change", () => show(+$("predictor").value));

    function listTasks() {
        $("task").replaceChildren();
        data.drives.forEach((d, k) => {
            const o = document.createElement("option");
            o.value = k;
            o.textContent = `${k + 1}: cell ${d.start} to ${d.goal}`;
            $("task").append(o);
        });
        $("play").disabled = $("task").disabled = $("time").disabled = !data.drives.length;
    }
    $("task").addEventListener("change", () => {
        setPlaying(false);
        state.drive = +$("task").value;
        state.at = 0;
        drawDrive();
        sayOutcome();
    });
    $("time").addEventListener("input", () => {
        setPlaying(false);
        state.at = +$("time").value;
        drawDrive();
    });
    $("play").addEventListener("click", play);

    listTasks();
    adopt();
    drawCell();
    drawDrive();
    sayOutcome();
})();
