// The attention page: small maps of all heads, a large map of one, and the selection.

const floats = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);

// (T, S) with NaN where masked.
function matrix(text, layer) {
  const packed = floats(text);
  if (!layer.causal) return packed;
  const full = new Float32Array(layer.T * layer.S).fill(NaN);
  for (let i = 0, n = 0; i < layer.T; ++i) for (let j = 0; j <= i; ++j) full[i * layer.S + j] = packed[n++];
  return full;
}
const run = data.run;
if (run.logits) run.logits = floats(run.logits);
for (const layer of run.layers)
  for (const head of layer.heads) {
    head.maps = { A: matrix(head.A, layer), G: matrix(head.G, layer) };
    head.maps.AG = head.maps.A.map((a, n) => a * head.maps.G[n]);
    for (const name of ["q", "k", "scoreGradient"]) if (head[name]) head[name] = floats(head[name]);
    for (const name of ["bias", "scores"]) if (head[name]) head[name] = matrix(head[name], layer);
    head.pattern = head.label === null ? null : head.patterns[0];
  }

// Named weights may be negative, as a difference of two softmaxes.
const negative = run.layers.some((layer) => layer.heads.some((head) => head.maps.A.some((a) => a < 0)));

// ---- the selection ----

const modes = {
  A: { name: "A", title: "attention weights" },
  G: { name: "dL/dA", title: "gradient of the loss with respect to each weight" },
  AG: { name: "A·dL/dA", title: "weight times gradient" },
};
const view = { layer: data.layer, head: data.head, mode: "A", shared: false, row: data.position, column: data.key, locked: false };
const layerNow = () => run.layers[view.layer];
const headNow = () => layerNow().heads[view.head];

// A visible form of a token: shows spaces, line ends, control characters and combining marks.
function visible(token) {
  const names = { " ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍", "\u200d": "\u200d" };
  if (token === "") return "∅";
  if (/^[\p{M}]/u.test(token)) return "◌" + token;
  return token.replace(/[ \p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => names[c] ?? `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
}
const queryToken = (i) => (data.tokens.length > i ? visible(data.tokens[i]) : String(i));
const keyToken = (j, layer = layerNow()) => (layer.self ? queryToken(j) : data.keys.length > j ? visible(data.keys[j]) : String(j));
// Isolates text that reads from right to left.
const word = (text) => make("bdi", { class: "token" }, text);
const placed = (text, place) => (text === String(place) ? [word(text)] : [word(text), ` (${place})`]);

const sees = (head, layer, i, j) => !Number.isNaN(head.maps.A[i * layer.S + j]);
const layerTitle = (layer) => `layer ${layer.index}`;

// ---- colours ----

const palettes = {
  light: { weight: [[255, 255, 255], [158, 202, 225], [33, 113, 181], [8, 29, 88]], signed: [[5, 80, 174], [245, 245, 245], [178, 24, 43]], masked: [228, 229, 232] },
  dark: { weight: [[22, 24, 28], [38, 82, 128], [82, 160, 224], [232, 244, 255]], signed: [[96, 170, 255], [30, 32, 37], [255, 120, 105]], masked: [52, 55, 62] },
};
const darkness = matchMedia("(prefers-color-scheme: dark)");
const palette = () => palettes[darkness.matches ? "dark" : "light"];
function between(stops, t) {
  const x = Math.min(Math.max(t, 0), 1) * (stops.length - 1), n = Math.min(Math.floor(x), stops.length - 2);
  return stops[n].map((c, k) => Math.round(c + (stops[n + 1][k] - c) * (x - n)));
}
// The ends of the colour scale: 0 and the largest weight, or - and + the largest magnitude.
const rangeOf = (head) => {
  if (!head.ranges) head.ranges = Object.fromEntries(Object.entries(head.maps).map(([name, map]) => [name, map.reduce((m, x) => (Math.abs(x) > m ? Math.abs(x) : m), 0)]));
  return head.ranges[view.mode];
};
const rangeNow = (head) => (view.shared ? Math.max(...run.layers.flatMap((l) => l.heads.map(rangeOf))) : rangeOf(head)) || 1;
const isPlain = () => view.mode === "A" && !negative;
function colour(x, range) {
  if (Number.isNaN(x)) return palette().masked;
  const part = Math.sqrt(Math.abs(x) / range); // of small weights among many keys nothing could be seen
  return isPlain() ? between(palette().weight, part) : between(palette().signed, 0.5 + (Math.sign(x) * part) / 2);
}
const css = ([r, g, b]) => `rgb(${r}, ${g}, ${b})`;
function paint(canvas, head, layer) {
  canvas.width = layer.S;
  canvas.height = layer.T;
  const context = canvas.getContext("2d"), image = context.createImageData(layer.S, layer.T), range = rangeNow(head), map = head.maps[view.mode];
  for (let n = 0; n < map.length; ++n) {
    const [r, g, b] = colour(map[n], range);
    image.data.set([r, g, b, 255], 4 * n);
  }
  context.putImageData(image, 0, 0);
}
const largestSide = (layer) => Math.max(layer.T, layer.S);

// ---- the tip that follows the pointer ----

const tip = make("div", { class: "tip", hidden: true, role: "status" });
function showTip(event, ...children) {
  tip.replaceChildren(...children);
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), room = document.documentElement.clientWidth - box.width - 8;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, room))}px`;
  tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
}
const hideTip = () => { tip.hidden = true; };
function cellAt(event, element, layer) {
  const box = element.getBoundingClientRect();
  const at = (x, size, cells) => Math.min(cells - 1, Math.max(0, Math.floor((x / size) * cells)));
  return [at(event.clientY - box.top, box.height, layer.T), at(event.clientX - box.left, box.width, layer.S)];
}
function numbersOf(head, layer, i, j) {
  const n = i * layer.S + j;
  if (!sees(head, layer, i, j)) return ["masked: this key is not seen"];
  return Object.entries(head.maps).flatMap(([name, map], k) => [k ? ", " : "", `${modes[name].name} `, make("b", { class: "number" }, number(map[n]))]);
}
const cellText = (head, layer, i, j) => [...placed(queryToken(i), i), " looks at ", ...placed(keyToken(j, layer), j), ": ", ...numbersOf(head, layer, i, j)];

// ---- the grid of heads ----

const signed = (x) => (Number.isNaN(x) ? "not finite" : (x >= 0 ? "+" : "−") + number(Math.abs(x)));
const changeWithout = (head) => (head.without === null ? NaN : head.without - run.loss); // JSON has no infinity
const grid = make("div", { class: "heads", role: "group", "aria-label": "All heads: arrow keys move, Enter enlarges" });
const cells = []; // by layer, then head
function buildGrid() {
  run.layers.forEach((layer, l) => {
    const row = make("div", { class: "row" });
    cells.push(layer.heads.map((head, h) => {
      const canvas = make("canvas", { class: largestSide(layer) <= 90 ? "small sharp" : "small", "aria-hidden": true });
      const cell = make("button", { type: "button", class: "head", tabindex: l === view.layer && h === view.head ? 0 : -1, "data-layer": l, "data-head": h,
        onclick: () => select(l, h, true), onpointerleave: hideTip, onkeydown: (event) => moveInGrid(event, l, h),
        onpointermove: (event) => {
          const now = run.layers[l], [i, j] = cellAt(event, canvas, now);
          showTip(event, make("b", {}, `${now.name}, head ${now.heads[h].index}`), make("br"), ...cellText(now.heads[h], now, i, j));
        } }, canvas, make("span", { class: "what" }), make("span", { class: "off" }));
      row.append(cell);
      return cell;
    }));
    grid.append(make("div", { class: "layer" }, make("h3", {}, `${layerTitle(layer)} `, make("span", { class: "soft" }, layer.name)), row));
  });
}
function moveInGrid(event, l, h) {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (!step) return;
  event.preventDefault();
  const layer = Math.min(cells.length - 1, Math.max(0, l + step[0])), head = Math.min(cells[layer].length - 1, Math.max(0, h + step[1]));
  cells[l][h].tabIndex = -1;
  cells[layer][head].tabIndex = 0;
  cells[layer][head].focus();
}
function drawGrid() {
  const losses = run.layers.flatMap((layer) => layer.heads.map((head) => Math.abs(changeWithout(head)) || 0));
  const most = Math.max(...losses);
  cells.forEach((row, l) => row.forEach((cell, h) => {
    const layer = run.layers[l], head = layer.heads[h], difference = changeWithout(head);
    paint(cell.querySelector("canvas"), head, layer);
    cell.setAttribute("aria-pressed", l === view.layer && h === view.head);
    const what = head.pattern ? `${head.pattern[0]} ${head.pattern[1].toFixed(2)}` : "no clear pattern";
    cell.querySelector(".what").replaceChildren(make("b", {}, `${head.index}`), ` ${what}`);
    cell.querySelector(".what").classList.toggle("soft", !head.pattern);
    cell.querySelector(".off").replaceChildren(`off: ${signed(difference)}`, make("i", { style: `width: ${(100 * Math.abs(difference)) / (most || 1)}%`, class: difference >= 0 ? "up" : "down" }));
    cell.setAttribute("aria-label", `${layer.name}, head ${head.index}: ${what}; the loss changes by ${signed(difference)} without it`);
  }));
}

// ---- one head, large ----

const big = make("canvas", { "aria-hidden": true });
const rowMark = make("div", { class: "mark" }), columnMark = make("div", { class: "mark" }), cellMark = make("div", { class: "cell" });
const map = make("div", { class: "map", tabindex: 0, role: "application", "aria-label": "Attention map: arrow keys move, Enter locks, Escape unlocks",
  onpointermove: (event) => {
    const [i, j] = cellAt(event, big, layerNow());
    showTip(event, ...cellText(headNow(), layerNow(), i, j));
    if (!view.locked) moveTo(i, j);
  },
  onpointerleave: hideTip,
  onclick: (event) => {
    const [i, j] = cellAt(event, big, layerNow()), again = view.locked && i === view.row && j === view.column;
    view.locked = !again;
    moveTo(i, j);
  },
  onkeydown: (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key], layer = layerNow();
    if (step) {
      event.preventDefault();
      view.locked = true;
      moveTo(Math.min(layer.T - 1, Math.max(0, view.row + step[0])), Math.min(layer.S - 1, Math.max(0, view.column + step[1])));
    } else if (event.key === "Enter" || event.key === " " || event.key === "Escape") {
      event.preventDefault();
      view.locked = event.key !== "Escape" && !view.locked;
      moveTo(view.row, view.column);
    }
  } }, big, rowMark, columnMark, cellMark);
const rowLabels = make("div", { class: "labels rows", "aria-hidden": true }), columnLabels = make("div", { class: "labels columns", "aria-hidden": true });
const bigTitle = make("h2", {}), readout = make("p", { class: "readout", "aria-live": "polite" });
const strip = make("p", { class: "strip", "aria-label": "The text: click a token to look from it" });
const legend = make("div", { class: "legend" });

function drawBig() {
  const layer = layerNow(), head = headNow();
  bigTitle.replaceChildren(`${layerTitle(layer)} `, make("span", { class: "soft" }, layer.name), `, head ${head.index}: ${modes[view.mode].title}`);
  paint(big, head, layer);
  big.classList.toggle("sharp", largestSide(layer) <= 560);
  map.style.aspectRatio = `${layer.S} / ${layer.T}`;
  const readable = largestSide(layer) <= 72;
  rowLabels.replaceChildren(...(readable ? Array.from({ length: layer.T }, (_, i) => word(queryToken(i))) : []));
  columnLabels.classList.toggle("words", Array.from({ length: layer.S }, (_, j) => keyToken(j)).some((token) => Array.from(token).length > 2));
  columnLabels.replaceChildren(...(readable ? Array.from({ length: layer.S }, (_, j) => word(keyToken(j))) : []));
  drawLegend();
  drawPatterns();
  moveTo(Math.min(view.row, layer.T - 1), Math.min(view.column, layer.S - 1));
}
function drawLegend() {
  const range = rangeNow(headNow()), low = isPlain() ? 0 : -range;
  // Even steps of colour, which is the square root of the value.
  const stops = Array.from({ length: 17 }, (_, n) => (isPlain() ? n / 16 : n / 8 - 1)).map((t) => css(colour(Math.sign(t) * t * t * range, range)));
  const said = isPlain() ? "share of the query's attention"
    : view.mode === "A" ? "red: adds the value; blue: subtracts it"
    : view.mode === "G" ? "blue: more weight here would lower the loss; red: raise it"
      : "dL/dA times A: the effect where the head does look";
  const middle = isPlain() ? range / 4 : 0;
  legend.replaceChildren(
    make("span", { class: "scale" }, make("span", { class: "ramp", style: `background: linear-gradient(to right, ${stops.join(", ")})` }),
      make("span", { class: "ends number" }, [low, middle, range].map((x) => make("span", {}, number(x))))),
    make("span", { class: "soft" }, said), make("span", { class: "soft" }, make("span", { class: "swatch", style: `background: ${css(palette().masked)}` }), " masked"));
}
function drawStrip() {
  const layer = layerNow(), head = headNow(), range = rangeNow(head), n = view.row * layer.S;
  const keys = Array.from({ length: layer.S }, (_, j) => {
    const c = colour(head.maps[view.mode][n + j], range), bright = 0.3 * c[0] + 0.6 * c[1] + 0.1 * c[2] > 128;
    const seen = sees(head, layer, view.row, j);
    return make("bdi", { class: `token${layer.self && j === view.row ? " query" : ""}${j === view.column ? " key" : ""}${seen ? "" : " unseen"}`, "data-position": j,
      style: seen ? `background: ${css(c)}; color: ${bright ? "#111" : "#fff"}` : undefined,
      onclick: () => (layer.self ? moveTo(j, Math.min(j, view.column)) : moveTo(view.row, j)) }, keyToken(j));
  });
  strip.replaceChildren(...(layer.self ? [] : [make("span", { class: "soft" }, "query "), word(queryToken(view.row)), make("br")]), ...keys);
}

// ---- changes of the selection ----

function moveTo(row, column) {
  view.row = row;
  view.column = column;
  const layer = layerNow(), head = headNow(), percent = (x, cells) => `${(100 * x) / cells}%`;
  Object.assign(rowMark.style, { left: 0, width: "100%", top: percent(row, layer.T), height: percent(1, layer.T) });
  Object.assign(columnMark.style, { top: 0, height: "100%", left: percent(column, layer.S), width: percent(1, layer.S) });
  Object.assign(cellMark.style, { top: percent(row, layer.T), height: percent(1, layer.T), left: percent(column, layer.S), width: percent(1, layer.S) });
  map.classList.toggle("locked", view.locked);
  readout.replaceChildren(...cellText(head, layer, row, column), make("span", { class: "soft" }, view.locked ? " (locked: Escape lets go)" : ""));
  drawStrip();
  drawWhy();
  drawNext();
}
function select(layer, head, show) {
  cells[view.layer][view.head].tabIndex = -1;
  view.layer = layer;
  view.head = head;
  cells[layer][head].tabIndex = 0;
  drawAll();
  if (show && (bigTitle.getBoundingClientRect().top > innerHeight - 150 || bigTitle.getBoundingClientRect().top < 0)) bigTitle.scrollIntoView();
}
function drawAll() {
  drawGrid();
  drawBig();
}
