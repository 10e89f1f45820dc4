// The attention page: the terms of a weight, the next token, the controls, and the page's
// self-check.

const why = make("div", { class: "panel why" }), next = make("div", { class: "panel next" });

const isSoftmax = (head) => head.q !== undefined || head.scores !== undefined;
// The scores of a query: NaN where masked.
function scoresOf(head, layer, i) {
  return Array.from({ length: layer.S }, (_, j) => {
    const n = i * layer.S + j;
    if (!sees(head, layer, i, j)) return NaN;
    if (!head.q) return head.scores[n];
    let sum = 0;
    for (let d = 0; d < layer.D; ++d) sum += head.q[i * layer.D + d] * head.k[j * layer.D + d];
    return sum * layer.scale + (head.bias ? head.bias[n] : 0);
  });
}
function softmax(scores) {
  const largest = scores.reduce((m, s) => (s > m ? s : m), -Infinity), exps = scores.map((s) => Math.exp(s - largest));
  const sum = exps.reduce((t, e) => (Number.isNaN(e) ? t : t + e), 0);
  return { largest, exps, sum, p: exps.map((e) => e / sum) };
}
const meanGradient = (head, layer, i) => {
  let sum = 0;
  for (let j = 0; j < layer.S; ++j) if (sees(head, layer, i, j)) sum += head.maps.AG[i * layer.S + j];
  return sum;
};

function productTable(head, layer, i, j) {
  const rows = Array.from({ length: layer.D }, (_, d) => [d, head.q[i * layer.D + d], head.k[j * layer.D + d]]).map(([d, q, k]) => [d, q, k, q * k]);
  const dot = rows.reduce((sum, row) => sum + row[3], 0);
  rows.sort((a, b) => Math.abs(b[3]) - Math.abs(a[3]));
  const most = Math.abs(rows[0][3]) || 1;
  const table = make("table", { class: "number" }, make("thead", {}, make("tr", {}, ["d", "q", "k", "q × k", ""].map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, rows.map(([d, q, k, product]) => make("tr", {}, [d, number(q), number(k), number(product)].map((x) => make("td", {}, String(x))),
      make("td", {}, make("i", { class: product >= 0 ? "bar plus" : "bar minus", style: `width: ${(5 * Math.abs(product)) / most}rem` }))))));
  return [dot, table];
}
function drawWhy() {
  const layer = layerNow(), head = headNow(), { row: i, column: j } = view, n = i * layer.S + j;
  const title = make("h2", {}, "Why this weight: ", ...placed(queryToken(i), i), " looks at ", ...placed(keyToken(j), j));
  if (!isSoftmax(head)) {
    why.replaceChildren(title, make("p", {}, "The layer named these weights. They are no softmax of scores, so their terms are not known; a weight of 0 is shown as masked."),
      make("div", { class: "scroll" }, make("table", {}, make("tbody", {}, [["A in the program", head.maps.A[n], "program"], ["dL/dA", head.maps.G[n]]].map(([name, x, id]) =>
        make("tr", {}, make("td", {}, name), make("td", { class: "number", id }, sees(head, layer, i, j) ? number(x) : "0")))))));
    return;
  }
  if (!sees(head, layer, i, j)) {
    why.replaceChildren(title, make("p", {}, `Masked: query ${i} does not see key ${j}${layer.causal ? ", which comes after it" : ""}. The score is −∞, the weight 0, and no gradient passes.`));
    return;
  }
  const scores = scoresOf(head, layer, i), { largest, exps, sum, p } = softmax(scores), steps = [];
  const step = (what, value, id) => steps.push(make("tr", {}, make("td", {}, what), make("td", { class: "number", id }, number(value))));
  let products = null;
  if (head.q) {
    const [dot, table] = productTable(head, layer, i, j);
    products = make("div", { class: "scroll products" }, table);
    step(`q · k, the sum of ${layer.D} products`, dot, "dot");
    const root = Math.abs(layer.scale * Math.sqrt(layer.D) - 1) < 1e-6;
    step(root ? `÷ √${layer.D}` : `× ${number(layer.scale)}`, dot * layer.scale, "scaled");
    if (head.bias) step("+ bias", head.bias[n]);
    step("not masked: the score", scores[j], "score");
  } else {
    step("the score, as the program had it (it is not q · k × a number + bias)", scores[j], "score");
  }
  const seen = scores.filter((s) => !Number.isNaN(s)).length;
  step(`exp(score − ${number(largest)}), the largest score of this query`, exps[j]);
  step(`÷ ${number(sum)}, the sum of these over the ${seen} keys that are seen: softmax`, p[j], "weight");
  step("A in the program", head.maps.A[n], "program");
  const gradient = head.maps.G[n], mean = meanGradient(head, layer, i), score = head.maps.A[n] * (gradient - mean);
  const effect = (x) => (x === 0 ? "would not change the loss" : x < 0 ? "would lower the loss" : "would raise the loss");
  const words = make("table", {}, make("tbody", {},
    [["dL/dA", gradient, `a little more of this weight alone ${effect(gradient)}`],
      ["Σ A·dL/dA over the keys", mean, "its mean under A: softmax gives one key what it takes from the others, so only differences from the mean count"],
      ["dL/dscore = A (dL/dA − Σ)", score, `a higher score ${effect(score)}`]].map(([name, x, said]) =>
      make("tr", {}, make("td", {}, name), make("td", { class: "number" }, number(x)), make("td", { class: "soft" }, said)))));
  why.replaceChildren(title, make("div", { class: products === null ? "" : "columns2" },
    products === null ? null : make("div", {}, make("h3", {}, "q and k, largest product first"), products),
    make("div", {}, make("h3", {}, "From score to weight"), make("div", { class: "scroll" }, make("table", { class: "steps" }, make("tbody", {}, steps))), make("h3", {}, "What the loss wants"), make("div", { class: "scroll" }, words))));
}

// ---- the next token ----

const settings = { temperature: 1, topK: 0, topP: 1, minP: 0 };
const className = (c) => (data.classes.length > c ? visible(data.classes[c]) : String(c));
const hasNext = (layer) => run.logits !== undefined && run.logits.length === layer.T * run.classes;

const greatest = (list) => list.reduce((a, b) => Math.max(a, b)); // of a vocabulary that is no list of arguments
// Temperature, then top-k, top-p and min-p, each on the result of the one before; 0 for dropped
// tokens.
function distribution(logits, { temperature, topK, topP, minP }) {
  const order = Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a] || a - b);
  if (temperature === 0) return Array.from(logits, (_, c) => Number(c === order[0]));
  let p = softmax(Array.from(logits, (x) => x / temperature)).p;
  const keep = (test) => {
    const kept = p.map((x, c) => (test(x, c) ? x : 0)), sum = kept.reduce((a, b) => a + b, 0);
    p = kept.map((x) => x / sum);
  };
  if (topK > 0 && topK < p.length) {
    const least = logits[order[topK - 1]];
    keep((_, c) => logits[c] >= least);
  }
  if (topP < 1) {
    let before = 0;
    const nucleus = new Set();
    for (const c of order) {
      if (before >= topP && nucleus.size > 0) break;
      nucleus.add(c);
      before += p[c];
    }
    keep((_, c) => nucleus.has(c));
  }
  if (minP > 0) {
    const least = minP * greatest(p);
    keep((x) => x >= least);
  }
  return p;
}
const bars = make("div", { class: "bars" }), nextTitle = make("h2", {});
const shownBars = 12;
function slider(name, label, attributes, format) {
  const value = make("output", { class: "number" }, format(settings[name]));
  return make("label", {}, make("span", {}, label, " ", value), make("input", { type: "range", name, ...attributes, value: settings[name], oninput: (event) => {
    settings[name] = Number(event.target.value);
    value.textContent = format(settings[name]);
    drawNext();
  } }));
}
function buildNext() {
  next.append(nextTitle, make("div", { class: "sliders" },
    slider("temperature", "temperature", { min: 0, max: 2, step: 0.05 }, (x) => x.toFixed(2)),
    slider("topK", "top-k", { min: 0, max: run.classes, step: 1 }, (x) => (x === 0 ? "off" : String(x))),
    slider("topP", "top-p", { min: 0.05, max: 1, step: 0.05 }, (x) => (x === 1 ? "off" : x.toFixed(2))),
    slider("minP", "min-p", { min: 0, max: 1, step: 0.01 }, (x) => (x === 0 ? "off" : x.toFixed(2)))),
  make("p", { class: "soft" }, "In this order: temperature, top-k, top-p, min-p."), bars);
}
function drawNext() {
  const layer = layerNow();
  next.hidden = !hasNext(layer);
  if (next.hidden) return;
  const V = run.classes, logits = run.logits.subarray(view.row * V, (view.row + 1) * V);
  const p = distribution(logits, settings), plain = distribution(logits, { temperature: 1, topK: 0, topP: 1, minP: 0 });
  const target = data.targets.length > view.row ? data.targets[view.row] : -1;
  const order = Array.from(p.keys()).sort((a, b) => p[b] - p[a] || plain[b] - plain[a] || a - b), shown = order.slice(0, shownBars);
  if (target >= 0 && target < V && !shown.includes(target)) shown[shown.length - 1] = target;
  nextTitle.replaceChildren("What comes after ", ...placed(queryToken(view.row), view.row));
  const left = p.filter((x) => x > 0).length;
  bars.replaceChildren(...shown.map((c) => make("div", { class: `choice${p[c] === 0 ? " cut" : ""}`, "data-class": c },
    make("bdi", { class: "token" }, className(c)),
    make("span", { class: "track" }, make("i", { style: `width: ${100 * p[c]}%` })),
    make("span", { class: "number" }, p[c] === 0 ? "cut" : `${(100 * p[c]).toPrecision(3)} %`),
    make("span", { class: "soft" }, c === target ? `← the text; loss ${number(-Math.log(plain[c]))}` : ""))),
  make("p", { class: "soft" }, `${left} of ${V} are left; at temperature 1 and without cuts the first has ${(100 * greatest(plain)).toPrecision(3)} %.`));
}

// ---- the controls ----

function buildControls() {
  const buttons = Object.entries(modes).map(([mode, { name, title }]) => make("button", { type: "button", "data-mode": mode, title, "aria-pressed": String(mode === view.mode), onclick: () => {
    view.mode = mode;
    for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.mode === mode);
    drawAll();
  } }, name));
  const shared = make("button", { type: "button", class: "shared", "aria-pressed": "false", onclick: () => {
    view.shared = !view.shared;
    shared.setAttribute("aria-pressed", view.shared);
    drawAll();
  } }, "one scale for all heads");
  const said = make("span", {}, make("b", {}, run.name), ` loss ${number(run.loss)}`);
  return make("div", { class: "controls" }, make("div", { role: "group", "aria-label": "What the colours show" }, buttons, " ", shared), said);
}
const help = () => make("details", {}, make("summary", {}, "Keys, labels and numbers"),
  make("p", {}, "Click a small map, or ", make("kbd", {}, "Enter"), " on it, to enlarge it; ", make("kbd", {}, "←"), make("kbd", {}, "→"), make("kbd", {}, "↑"), make("kbd", {}, "↓"),
    " move between heads. On the large map they move the query (up, down) and the key (left, right); a click or ", make("kbd", {}, "Enter"), " locks the selection, ", make("kbd", {}, "Escape"), " lets go. A click on the text looks from that token."),
  make("p", {}, "“off” is the change of the loss when the output of that head is zero and everything after it is computed again."),
  make("p", {}, "A label has a score of 0.5 or more: the share of attention that follows the pattern, above the share of evenly spread attention, where 1 is all of it. Below that there is no clear pattern."));
const patternTable = make("div", { class: "scroll" });
function drawPatterns() {
  patternTable.replaceChildren(make("table", { class: "patterns" }, make("tbody", {}, headNow().patterns.map(([name, score]) =>
    make("tr", { class: score >= 0.5 ? "reached" : "soft" }, make("td", {}, name), make("td", { class: "number" }, score.toFixed(2).replace(/^-(0\.00)$/, "$1")))))));
}

// ---- the page's self-check ----

function checkHead(where, head, layer) {
  // The accuracy of differences of float32 numbers that cancel.
  const largest = (list, part) => list.reduce((m, x) => Math.max(m, part * Math.abs(x) || 0), 0);
  const most = Math.max(largest(head.scoreGradient, 1), largest(head.maps.G, 1e-3)) || 1;
  for (let i = 0; i < layer.T; ++i) {
    const { p } = softmax(scoresOf(head, layer, i)), mean = meanGradient(head, layer, i);
    let sum = 0, gradient = 0, worst = -1, off = -1;
    for (let j = 0; j < layer.S; ++j) {
      if (!sees(head, layer, i, j)) continue;
      const n = i * layer.S + j;
      sum += head.maps.A[n];
      gradient += Math.abs(head.maps.A[n] * (head.maps.G[n] - mean));
      if (!(Math.abs(p[j] - head.maps.A[n]) <= off)) [worst, off] = [j, Math.abs(p[j] - head.maps.A[n])];
    }
    if (worst < 0) continue; // all masked
    check(`${where} query ${i} key ${worst}: softmax`, p[worst], head.maps.A[i * layer.S + worst]);
    check(`${where} query ${i}: sum of weights`, sum, 1);
    check(`${where} query ${i}: gradient of the scores`, gradient / most, head.scoreGradient[i] / most, 1e-3);
  }
}
function checkAll() {
  for (const layer of run.layers) for (const head of layer.heads.filter(isSoftmax)) checkHead(`${layer.name} head ${head.index}`, head, layer);
  if (run.logits) {
    const largest = floats(run.largest), V = run.classes;
    largest.forEach((p, i) => check(`position ${i}: likeliest`, greatest(distribution(run.logits.subarray(i * V, (i + 1) * V), settings)), p));
  }
  checked();
}

buildGrid();
if (run.logits) buildNext();
document.getElementById("attention").append(buildControls(), strip,
  make("div", { class: "halves" },
    make("section", {}, make("h2", {}, "Heads"), grid),
    make("section", {}, bigTitle, legend, make("div", { class: "plot" }, columnLabels, rowLabels, map), readout, make("h3", {}, "What this head does"), patternTable)),
  why, next, help());
document.body.append(tip);
darkness.addEventListener("change", drawAll);
select(view.layer, view.head, false);
checkAll();
