// What the page of a trace does: a flame graph, a timeline and a table, drawn from `DATA`. Runs in the reader's browser.

extension ViewPage {
    static let script = #"""
        "use strict";
        // The page of one trace (or of two, compared). `DATA` comes before this script; docs/view.md has its shape.
        (() => {
        const $ = id => document.getElementById(id);
        const root = document.documentElement;

        // MARK: what the page is about

        const functions = DATA.functions; // [name, module] each
        const T = DATA.tree;              // columns: depth, fn, calls, total, self, flags, and for a comparison also before
        const count = T.fn.length;
        const isDiff = !!T.before;
        const end = new Uint32Array(count), parent = new Int32Array(count);
        {
          // Nodes stand in preorder with their depth: who belongs to whom follows.
          const open = [];
          for (let i = 0; i < count; i++) {
            while (open.length > T.depth[i]) end[open.pop()] = i;
            parent[i] = open.length ? open[open.length - 1] : -1;
            open.push(i);
          }
          while (open.length) end[open.pop()] = count;
        }
        const depthBelow = new Uint16Array(count); // levels below each
        for (let i = count - 1; i >= 0; i--) {
          const p = parent[i];
          if (p >= 0 && depthBelow[p] < depthBelow[i] + 1) depthBelow[p] = Math.min(depthBelow[i] + 1, 65535);
        }
        const nameOf = i => T.fn[i] < 0 ? T.names[-1 - T.fn[i]] : functions[T.fn[i]][0];
        const moduleOf = i => T.fn[i] < 0 ? "" : functions[T.fn[i]][1];

        // MARK: numbers

        function time(ns) {
          const sign = ns < 0 ? "−" : "", v = Math.abs(ns);
          if (v < 1e3) return sign + Math.round(v) + " ns";
          if (v < 1e6) return sign + (v / 1e3).toPrecision(v < 1e5 ? 3 : 4) + " µs";
          if (v < 1e9) return sign + (v / 1e6).toPrecision(v < 1e8 ? 3 : 4) + " ms";
          return sign + (v / 1e9).toPrecision(4) + " s";
        }
        const change = ns => (ns > 0 ? "+" : "") + time(ns);
        const many = n => n.toLocaleString("en-US");
        const share = (part, whole) => whole > 0 ? (part / whole * 100).toFixed(part / whole < 0.0995 ? 2 : 1) + " %" : "";
        const plural = (n, noun) => many(n) + " " + noun + (n === 1 ? "" : "s");

        // MARK: colour

        /// A module has a hue of its own, in both themes: warm for the program, cool for libraries.
        const hues = new Map();
        function hue(module) {
          let h = hues.get(module);
          if (h === undefined) {
            let sum = 0;
            for (let i = 0; i < module.length; i++) sum = (sum * 31 + module.charCodeAt(i)) >>> 0;
            h = module === DATA.executable ? 18 : 60 + sum % 260;
            hues.set(module, h);
          }
          return h;
        }
        const isDark = () => root.dataset.theme === "dark";
        function fill(i) {
          if (T.fn[i] < 0) return isDark() ? "#39435a" : "#d3d9e4";
          if (isDiff) return difference(T.flags[i] & 8 ? 0 : T.total[i] - T.before[i]);
          return shade(moduleOf(i), T.fn[i]);
        }
        /// Functions of a module differ a little, so that neighbours are told apart.
        function shade(module, fn) {
          const wobble = fn % 5 * 2;
          return isDark() ? `hsl(${hue(module)} 42% ${55 + wobble}%)` : `hsl(${hue(module)} 68% ${76 + wobble}%)`;
        }
        let largest = 1;
        if (isDiff) for (let i = 0; i < count; i++) if (parent[i] >= 0) largest = Math.max(largest, Math.abs(T.total[i] - T.before[i]));
        /// Red slower, blue faster; how strong follows the square root, so that small ones are seen too.
        function difference(d) {
          const strength = Math.sqrt(Math.min(Math.abs(d) / largest, 1));
          const light = isDark() ? 30 + 32 * strength : 96 - 36 * strength;
          return d === 0 ? (isDark() ? "#39435a" : "#e8ebf0") : `hsl(${d > 0 ? 4 : 216} ${30 + 50 * strength}% ${light}%)`;
        }
        const ink = name => getComputedStyle(root).getPropertyValue(name).trim();

        // MARK: search

        let pattern = null, matched = null;
        function search(text) {
          pattern = null;
          matched = null;
          $("matches").textContent = "";
          if (text) {
            try { pattern = new RegExp(text, "i"); } catch { pattern = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i"); }
            const known = functions.map(f => pattern.test(f[0]) || pattern.test(f[1]));
            matched = new Uint8Array(count);
            let sum = 0, whole = 0, calls = 0;
            for (let i = 0; i < count; i++) {
              matched[i] = T.fn[i] >= 0 && known[T.fn[i]] ? 1 : 0;
              if (parent[i] < 0) whole += T.total[i];
            }
            // The table has all calls; paths that were summed up have no names in the tree.
            for (const row of DATA.table) if (known[row[0]]) calls += row[1];
            // Time below a match counts once, however many matches lie inside each other.
            for (let i = 0; i < count;) if (matched[i]) { sum += T.total[i]; i = end[i]; } else i++;
            $("matches").textContent = calls ? `${plural(calls, "call")}, ${share(sum, whole)} of the time` : "no match";
          }
          redraw();
        }

        // MARK: a canvas that is as sharp as the screen

        function sized(canvas, width, height) {
          const ratio = window.devicePixelRatio || 1;
          // Browsers give up on canvases that are too large; what is deeper is cut and said.
          height = Math.min(height, Math.floor(30000 / ratio));
          canvas.style.width = width + "px";
          canvas.style.height = height + "px";
          canvas.width = Math.round(width * ratio);
          canvas.height = Math.round(height * ratio);
          const context = canvas.getContext("2d");
          context.setTransform(ratio, 0, 0, ratio, 0, 0);
          context.font = "12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
          context.textBaseline = "middle";
          return context;
        }
        let letter = 7;
        function label(context, text, x, y, width) {
          if (width < 22) return;
          const room = Math.floor((width - 8) / letter);
          if (room < 2) return;
          context.fillText(text.length <= room ? text : text.slice(0, Math.max(room - 1, 1)) + "…", x + 4, y);
        }
        const tip = $("tip");
        function showTip(event, text) {
          if (!text) { tip.style.display = "none"; return; }
          tip.textContent = text;
          tip.style.display = "block";
          const box = tip.getBoundingClientRect();
          tip.style.left = Math.min(event.clientX + 14, innerWidth - box.width - 8) + "px";
          tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + "px";
        }

        // MARK: flame graph

        const ROW = 20;
        const flame = { canvas: $("flame"), zoom: -1, chosen: -1, rows: [], root: 0 };
        const tops = [];
        for (let i = 0; i < count; i = end[i]) tops.push(i);

        /// Frames in view: [x, width, y, node], thinner ones left out with all that is above them, since they are thinner still.
        function layoutFlame(width) {
          const whole = flame.zoom >= 0 ? [flame.zoom] : flame.root < 0 ? tops : [tops[flame.root]];
          let sum = 0;
          for (const i of whole) sum += size(i);
          const rows = [];
          let deepest = 0, hidden = 0;
          // Ancestors of what is zoomed in to stay, at full width.
          const above = [];
          if (flame.zoom >= 0) for (let p = parent[flame.zoom]; p >= 0; p = parent[p]) above.unshift(p);
          above.forEach((node, level) => rows.push([0, width, level * ROW, node]));
          const stack = [];
          let x = 0;
          for (const i of whole) {
            const w = sum > 0 ? width * size(i) / sum : 0;
            stack.push([i, x, w, above.length]);
            x += w;
          }
          while (stack.length) {
            const [i, x0, w, level] = stack.pop();
            if (w < 0.4) { hidden++; continue; }
            rows.push([x0, w, level * ROW, i]);
            if (level > deepest) deepest = level;
            let at = x0;
            for (let child = i + 1; child < end[i]; child = end[child]) {
              const cw = size(i) > 0 ? w * size(child) / size(i) : 0;
              stack.push([child, at, cw, level + 1]);
              at += cw;
            }
          }
          flame.rows = rows;
          flame.byLevel = [];
          for (const row of rows) (flame.byLevel[row[2] / ROW] ||= []).push(row);
          for (const level of flame.byLevel) level && level.sort((a, b) => a[0] - b[0]);
          flame.deepest = deepest;
        }
        /// What a frame's width stands for: in a comparison the longer of both times of each path in it, so that what is gone is seen.
        const size = i => isDiff ? T.width[i] : T.total[i];

        function drawFlame() {
          const width = Math.max($("flame-box").clientWidth, 200);
          layoutFlame(width);
          const context = sized(flame.canvas, width, Math.max((flame.deepest + 1) * ROW + 4, $("flame-box").clientHeight - 4));
          letter = context.measureText("abcdefghijklmnopqrstuvwxyz").width / 26 + 0.4;
          const onFrame = ink("--on-frame"), hit = ink("--hit"), paper = ink("--paper"), text = ink("--ink");
          const ancestors = new Set();
          if (flame.zoom >= 0) for (let p = parent[flame.zoom]; p >= 0; p = parent[p]) ancestors.add(p);
          for (const [x, w, y, i] of flame.rows) {
            const isHit = matched && matched[i];
            context.globalAlpha = ancestors.has(i) ? 0.45 : matched && !isHit ? 0.35 : 1;
            context.fillStyle = isHit ? hit : fill(i);
            context.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.4), ROW - 1);
            if (i === flame.chosen) {
              context.strokeStyle = text;
              context.lineWidth = 2;
              context.strokeRect(x + 1, y + 1, Math.max(w - 3, 1), ROW - 3);
            }
            if (w > 22) {
              context.fillStyle = isDiff && !isHit && isDark() ? text : T.fn[i] < 0 && isDark() && !isHit ? text : onFrame;
              label(context, nameOf(i), x, y + ROW / 2, w);
            }
          }
          context.globalAlpha = 1;
          const crumbs = $("crumbs");
          crumbs.textContent = "";
          const add = (name, node) => {
            const button = document.createElement("button");
            button.textContent = name;
            button.onclick = () => zoomTo(node);
            crumbs.append(button);
          };
          add("all", -1);
          if (flame.zoom >= 0) {
            const path = [];
            for (let p = flame.zoom; p >= 0; p = parent[p]) path.unshift(p);
            for (const node of path.slice(-12)) add(nameOf(node), node);
          }
          describe(flame.chosen >= 0 ? flame.chosen : flame.zoom >= 0 ? flame.zoom : -1);
        }
        function describe(i) {
          const box = $("flame-details");
          box.textContent = "";
          const line = (text, soft) => {
            const span = document.createElement(soft ? "span" : "b");
            if (soft) span.className = "soft";
            span.textContent = text;
            box.append(span, " ");
          };
          if (i < 0) {
            line(isDiff ? "Width: the longer of both times. Red: slower than before, blue: faster, grey: as before, or within the noise. " : "Width: time. Colour: module. ", true);
            line("Click a frame to zoom in, Esc to zoom out, / to search, ? for all keys.", true);
            return;
          }
          line(nameOf(i));
          if (moduleOf(i)) line(moduleOf(i), true);
          box.append(document.createElement("br"));
          line(facts(i), true);
        }
        function facts(i) {
          let top = i;
          while (parent[top] >= 0) top = parent[top];
          if (isDiff) {
            const d = T.total[i] - T.before[i];
            const own = T.fn[i] < 0 ? "" : `, self ${time(T.selfBefore[i])} → ${time(T.self[i])}`;
            return `total ${time(T.before[i])} → ${time(T.total[i])} (${change(d)})${T.flags[i] & 8 ? ", within the noise" : ""}${own}, calls ${many(T.callsBefore[i])} → ${many(T.calls[i])}`;
          }
          let text = `total ${time(T.total[i])} (${share(T.total[i], T.total[top])})`;
          if (T.fn[i] >= 0) text += `, self ${time(T.self[i])}, ${plural(T.calls[i], "call")}` + (T.calls[i] > 1 ? `, ${time(T.total[i] / T.calls[i])} each` : "");
          const flags = T.flags ? T.flags[i] : 0;
          if (flags & 1) text += ", still running at the end";
          if (flags & 2) text += ", left without returning";
          if (flags & 4) text += ", cut by a gap in the trace";
          return text;
        }
        function frameAt(event) {
          const box = flame.canvas.getBoundingClientRect();
          const level = flame.byLevel && flame.byLevel[Math.floor((event.clientY - box.top) / ROW)], x = event.clientX - box.left;
          if (!level) return -1;
          let low = 0, high = level.length;
          while (low < high) { const middle = low + high >> 1; if (level[middle][0] <= x) low = middle + 1; else high = middle; }
          const row = level[low - 1];
          return row && x < row[0] + Math.max(row[1], 1.5) ? row[3] : -1;
        }
        function zoomTo(node) {
          flame.zoom = node;
          flame.chosen = node;
          $("flame-box").scrollTop = 0;
          drawFlame();
        }
        flame.canvas.onmousemove = event => { const i = frameAt(event); showTip(event, i < 0 ? "" : nameOf(i) + (moduleOf(i) ? "  " + moduleOf(i) : "") + "\n" + facts(i)); };
        flame.canvas.onmouseleave = event => showTip(event, "");
        flame.canvas.onclick = event => { const i = frameAt(event); if (i >= 0) zoomTo(i); flame.canvas.focus(); };
        $("root").onchange = () => { flame.root = +$("root").value; flame.zoom = flame.chosen = -1; drawFlame(); };
        {
          const select = $("root");
          const add = (text, value) => { const o = document.createElement("option"); o.textContent = text; o.value = value; select.append(o); };
          if (tops.length > 1) add("all threads", -1);
          tops.forEach((node, index) => add(`${nameOf(node)} — ${time(T.total[node])}`, index));
          flame.root = tops.length > 1 ? -1 : 0;
          select.value = flame.root;
        }
        /// Up and down: caller and longest callee; left and right: neighbours.
        function move(key) {
          const from = flame.chosen >= 0 ? flame.chosen : flame.zoom >= 0 ? flame.zoom : tops[Math.max(flame.root, 0)];
          let to = from;
          const up = parent[from];
          if (key === "ArrowUp") to = up >= 0 ? up : from;
          if (key === "ArrowDown" && from + 1 < end[from]) {
            to = from + 1;
            for (let child = from + 1; child < end[from]; child = end[child]) if (size(child) > size(to)) to = child;
          }
          if (key === "ArrowRight" && up >= 0 && end[from] < end[up]) to = end[from];
          if (key === "ArrowLeft" && up >= 0) for (let child = up + 1; child < from; child = end[child]) to = child;
          flame.chosen = to;
          drawFlame();
          const row = flame.rows.find(r => r[3] === to), box = $("flame-box");
          if (row && (row[2] < box.scrollTop || row[2] + ROW > box.scrollTop + box.clientHeight)) box.scrollTop = row[2] - box.clientHeight / 2;
        }

        // MARK: timeline

        const lanes = DATA.threads; // {name, slices: [start, length, fn, depth]…, dense: [start, length, depth, share]…, levels}
        const line = { from: 0, to: DATA.duration || 1, canvas: $("line"), boxes: [] };
        const BAND = 18, HEAD = 22;
        const startup = DATA.startup;
        function drawLine() {
          if (!lanes) return;
          const width = Math.max($("line-box").clientWidth, 200);
          const span = line.to - line.from, x = t => (t - line.from) / span * width;
          let height = HEAD + (startup ? (startup.stages.length ? BAND + 4 : 0) + (startup.constructors.length ? BAND + 4 : 0) : 0) + (startup && startup.marks.length ? BAND : 0);
          const tracks = lanes.map(lane => { const top = height; height += 20 + Math.max(lane.levels, 1) * BAND + 8; return top; });
          const context = sized(line.canvas, width, Math.max(height, $("line-box").clientHeight - 4));
          letter = context.measureText("abcdefghijklmnopqrstuvwxyz").width / 26 + 0.4;
          const text = ink("--ink"), soft = ink("--soft"), edge = ink("--edge"), onFrame = ink("--on-frame"), hit = ink("--hit"), mark = ink("--mark");
          line.boxes = [];
          const boxed = (x0, y, w, h, tipText, range) => line.boxes.push([x0, y, Math.max(w, 2), h, tipText, range]);

          // The scale: a round step, about a hundred pixels wide.
          const rough = span / (width / 110), power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map(f => f * power).find(s => s >= rough);
          for (let t = Math.ceil(line.from / step) * step; t <= line.to; t += step) {
            context.fillStyle = edge;
            context.fillRect(x(t), 0, 1, height);
            context.fillStyle = soft;
            context.fillText(time(t), x(t) + 4, 10);
          }
          let y = HEAD;
          const band = (items, colour, describe) => {
            items.forEach((item, index) => {
              const x0 = Math.max(x(item.at), -2), x1 = Math.min(x(item.at + item.length), width + 2);
              if (x1 < 0 || x0 > width) return;
              context.fillStyle = colour(item, index);
              context.fillRect(x0, y, Math.max(x1 - x0 - 1, 0.7), BAND);
              context.fillStyle = onFrame;
              label(context, item.name, x0, y + BAND / 2, x1 - x0);
              boxed(x0, y, x1 - x0, BAND, describe(item), [item.at, item.at + item.length]);
            });
            y += BAND + 4;
          };
          if (startup) {
            if (startup.stages.length) band(startup.stages, (_, n) => `hsl(${205 + n * 23} 55% ${isDark() ? 62 : 80}%)`, s => `${s.name}\n${time(s.length)}`);
            if (startup.constructors.length) band(startup.constructors, c => `hsl(${hue(c.module)} 60% ${isDark() ? 58 : 74}%)`, c => `constructor ${c.name}\n${c.module}\n${time(c.length)}`);
            if (startup.marks.length) {
              for (const m of startup.marks) {
                const at = x(m.at);
                if (at < 0 || at > width) continue;
                context.fillStyle = mark;
                context.fillRect(at, y, 1.5, height - y);
                context.fillText(m.name, at + 5, y + 8);
                boxed(at - 3, y, 8 + m.name.length * letter, BAND, `mark ${m.name}\nat ${time(m.at)}`);
              }
              y += BAND;
            }
          }
          lanes.forEach((lane, index) => {
            const top = tracks[index];
            context.fillStyle = edge;
            context.fillRect(0, top, width, 1);
            context.fillStyle = text;
            context.fillText(lane.name, 6, top + 10);
            context.fillStyle = soft;
            context.fillText(`${plural(lane.calls, "call")}`, 14 + context.measureText(lane.name).width, top + 10);
            const base = top + 20;
            const S = lane.slices, D = lane.dense;
            for (let i = 0; i < D.length; i += 4) {
              const x0 = x(D[i]), x1 = x(D[i] + D[i + 1]);
              if (x1 < 0 || x0 > width) continue;
              context.globalAlpha = 0.15 + 0.6 * D[i + 3];
              context.fillStyle = soft;
              context.fillRect(x0, base + D[i + 2] * BAND + 3, Math.max(x1 - x0, 0.7), BAND - 7);
            }
            context.globalAlpha = 1;
            // Slices stand in the order of their start; those a pixel wide or less are drawn once a pixel.
            const last = [];
            for (let i = 0; i < S.length; i += 4) {
              const at = S[i], length = S[i + 1], level = S[i + 3];
              if (at > line.to || at + length < line.from) continue;
              const x0 = Math.max(x(at), -2), x1 = Math.min(x(at + length), width + 2), w = x1 - x0;
              if (w < 1 && last[level] !== undefined && x0 - last[level] < 1) continue;
              last[level] = x0;
              const f = functions[S[i + 2]];
              const isHit = pattern && (pattern.test(f[0]) || pattern.test(f[1]));
              context.globalAlpha = pattern && !isHit ? 0.3 : 1;
              context.fillStyle = isHit ? hit : shade(f[1], S[i + 2]);
              context.fillRect(x0, base + level * BAND, Math.max(w - (w > 3 ? 1 : 0), 0.7), BAND - 1);
              context.fillStyle = onFrame;
              label(context, f[0], x0, base + level * BAND + BAND / 2, w);
              if (w >= 1) boxed(x0, base + level * BAND, w, BAND, `${f[0]}\n${f[1]}\n${time(length)} at ${time(at)}`, [at, at + length]);
            }
            context.globalAlpha = 1;
          });
          $("line-range").textContent = `${time(line.from)} to ${time(line.to)} (${time(span)})`;
        }
        function boxAt(event) {
          const area = line.canvas.getBoundingClientRect(), px = event.clientX - area.left, py = event.clientY - area.top;
          for (let i = line.boxes.length - 1; i >= 0; i--) {
            const [x, y, w, h] = line.boxes[i];
            if (px >= x && px < x + w && py >= y && py < y + h) return line.boxes[i];
          }
        }
        function show(from, to) {
          const whole = DATA.duration, least = Math.max(whole / 1e7, 20);
          let span = Math.min(Math.max(to - from, least), whole);
          from = Math.min(Math.max((from + to) / 2 - span / 2, 0), whole - span);
          line.from = from;
          line.to = from + span;
          schedule(drawLine);
        }
        const waiting = new Set();
        function schedule(draw) {
          if (waiting.has(draw)) return;
          waiting.add(draw);
          requestAnimationFrame(() => { waiting.delete(draw); draw(); });
        }
        let drag = null;
        line.canvas.addEventListener("wheel", event => {
          if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) < Math.abs(event.deltaY) && event.altKey) return;
          event.preventDefault();
          const area = line.canvas.getBoundingClientRect(), span = line.to - line.from;
          if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            const by = span * (event.deltaX || event.deltaY) / area.width;
            return show(line.from + by, line.to + by);
          }
          const at = line.from + span * (event.clientX - area.left) / area.width, factor = Math.exp(Math.sign(event.deltaY) * 0.2);
          show(at - (at - line.from) * factor, at + (line.to - at) * factor);
        }, { passive: false });
        line.canvas.onmousedown = event => { drag = { x: event.clientX, from: line.from, to: line.to, moved: false }; };
        addEventListener("mousemove", event => {
          if (!drag) return;
          const by = (drag.x - event.clientX) / line.canvas.clientWidth * (drag.to - drag.from);
          if (Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
          if (drag.moved) show(drag.from + by, drag.to + by);
        });
        addEventListener("mouseup", () => { drag = null; });
        line.canvas.onmousemove = event => { if (!drag) { const box = boxAt(event); showTip(event, box ? box[4] : ""); } };
        line.canvas.onmouseleave = event => showTip(event, "");
        line.canvas.ondblclick = event => { const box = boxAt(event); if (box && box[5]) show(box[5][0] - (box[5][1] - box[5][0]) * 0.05, box[5][1] + (box[5][1] - box[5][0]) * 0.05); else show(0, DATA.duration); };

        // MARK: table

        const columns = isDiff
          ? [["name", "Function"], ["before", "Self before", time], ["self", "Self after", time], ["change", "Change", (d, row) => change(d) + (row.noise ? " (noise)" : "")], ["callsBefore", "Calls before", many], ["calls", "Calls after", many]]
          : [["name", "Function"], ["share", "Self", (v, row) => meter(v)], ["self", "Self time", time], ["total", "Total", time], ["calls", "Calls", many], ["average", "Average", time], ["maximum", "Longest", time]];
        const table = { rows: DATA.table.map(makeRow), key: isDiff ? "change" : "self", down: true };
        const allSelf = table.rows.reduce((sum, row) => sum + Math.max(row.self, 0), 0);
        for (const row of table.rows) row.share = allSelf > 0 ? Math.max(row.self, 0) / allSelf : 0;
        table.most = Math.max(...table.rows.slice(0, 100000).map(row => row.share), 1e-9);
        function makeRow(r) {
          const [fn, calls, total, self, maximum, before, callsBefore, noise] = r;
          return { fn, name: functions[fn][0], module: functions[fn][1], calls, total, self, maximum, average: calls ? total / calls : 0,
                   before: before || 0, callsBefore: callsBefore || 0, change: self - (before || 0), noise };
        }
        function meter(value) {
          const box = document.createElement("span");
          box.className = "meter";
          const bar = document.createElement("i");
          bar.style.width = (value / table.most * 100).toFixed(1) + "%";
          box.append(bar);
          return box;
        }
        const MOST = 1000;
        function drawTable() {
          const head = $("table-head"), body = $("table-body");
          head.textContent = body.textContent = "";
          for (const [key, title] of columns) {
            const th = document.createElement("th");
            th.textContent = title;
            th.tabIndex = 0;
            th.setAttribute("role", "button");
            if (key === "name") th.className = "name";
            if (table.key === key) th.setAttribute("aria-sort", table.down ? "descending" : "ascending");
            th.onclick = () => { if (table.key === key) table.down = !table.down; else { table.key = key; table.down = key !== "name"; } drawTable(); };
            th.onkeydown = event => { if (event.key === "Enter") th.onclick(); };
            head.append(th);
          }
          let rows = table.rows;
          if (pattern) rows = rows.filter(row => pattern.test(row.name) || pattern.test(row.module));
          const key = table.key, sign = table.down ? -1 : 1, value = isDiff && key === "change" ? row => Math.abs(row.change) : row => row[key];
          rows = rows.slice().sort((a, b) => { const x = value(a), y = value(b); return (x < y ? -1 : x > y ? 1 : 0) * sign || (a.name < b.name ? -1 : 1); });
          const fragment = document.createDocumentFragment();
          for (const row of rows.slice(0, MOST)) {
            const tr = document.createElement("tr");
            for (const [key, , format] of columns) {
              const td = document.createElement("td");
              if (key === "name") {
                td.className = "name";
                td.title = row.name + "  " + row.module;
                const module = document.createElement("span");
                module.textContent = "  " + row.module;
                td.append(row.name, module);
              } else {
                const shown = format(row[key], row);
                td.append(shown);
                if (key === "share") td.append(" " + share(row[key], 1));
              }
              tr.append(td);
            }
            tr.onclick = () => { $("search").value = "^" + row.name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$"; search($("search").value); page("flame"); };
            fragment.append(tr);
          }
          body.append(fragment);
          $("table-count").textContent = `${plural(rows.length, "function")}` + (rows.length > MOST ? `, the first ${many(MOST)} shown` : "") + (pattern ? " match" : "") + ". Click one to see it in the flame graph.";
        }

        // MARK: pages, keys, theme

        const pages = { flame: drawFlame, line: drawLine, table: drawTable };
        let current = "flame";
        function page(name) {
          if (name === "line" && !lanes) return;
          current = name;
          for (const key of Object.keys(pages)) {
            $("page-" + key).classList.toggle("on", key === name);
            $("tab-" + key).setAttribute("aria-selected", key === name);
          }
          showTip(null, "");
          pages[name]();
        }
        const redraw = () => schedule(pages[current]);
        for (const key of Object.keys(pages)) $("tab-" + key).onclick = () => page(key);
        if (!lanes) $("tab-line").hidden = true;
        $("search").oninput = event => search(event.target.value);
        function theme(name) {
          root.dataset.theme = name;
          redraw();
        }
        $("theme").onclick = () => theme(isDark() ? "light" : "dark");
        $("help").onclick = () => $("keys").showModal();
        addEventListener("keydown", event => {
          const typing = event.target === $("search");
          if (event.key === "Escape") {
            if ($("keys").open) return;
            if (typing || pattern) { $("search").value = ""; $("search").blur(); search(""); } else if (current === "line") show(0, DATA.duration); else zoomTo(flame.zoom >= 0 ? parent[flame.zoom] : -1);
            return;
          }
          if (typing || event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
          const span = line.to - line.from;
          switch (event.key) {
          case "/": event.preventDefault(); $("search").focus(); $("search").select(); break;
          case "1": page("flame"); break;
          case "2": page("line"); break;
          case "3": page("table"); break;
          case "t": $("theme").click(); break;
          case "?": $("keys").showModal(); break;
          case "0": if (current === "line") show(0, DATA.duration); else zoomTo(-1); break;
          case "ArrowUp": case "ArrowDown": case "ArrowLeft": case "ArrowRight":
            if (current === "flame") { event.preventDefault(); move(event.key); }
            if (current === "line" && event.key === "ArrowLeft") show(line.from - span * 0.15, line.to - span * 0.15);
            if (current === "line" && event.key === "ArrowRight") show(line.from + span * 0.15, line.to + span * 0.15);
            break;
          case "Enter": if (current === "flame" && flame.chosen >= 0) zoomTo(flame.chosen); break;
          case "+": case "=": case "w": if (current === "line") show(line.from + span * 0.15, line.to - span * 0.15); break;
          case "-": case "s": if (current === "line") show(line.from - span * 0.2, line.to + span * 0.2); break;
          }
        });
        addEventListener("resize", redraw);

        $("title").textContent = DATA.title;
        $("facts").textContent = DATA.facts;
        $("facts").title = DATA.facts;
        document.title = DATA.title + " — tracer";
        if (DATA.notes.length) { $("notes").textContent = DATA.notes.join(" · "); $("notes").title = DATA.notes.join("\n"); }
        root.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
        page({ "#timeline": "line", "#table": "table" }[location.hash] || "flame");
        root.dataset.ready = "yes"; // for tests
        })();
        """#
}
