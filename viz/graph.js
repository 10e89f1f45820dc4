// The graph page: steps of the backward pass, the selected node, search.  It checks the program's
// numbers first.
const nodes = data.nodes.map((node) => ({ kind: "op", parts: [], missing: [], ...node, op: data.texts[node.op], scope: data.texts[node.scope] }));
for (const node of nodes) for (const part of node.parts) part.op = data.texts[part.op];
const consumers = nodes.map(() => []);
nodes.forEach((node, i) => node.inputs.forEach((input) => {
  if (input >= 0 && consumers[input >> 1].at(-1) !== i) consumers[input >> 1].push(i);
}));
const wrong = new Set(data.wrong);
// Missing contributions: of each op that got a gradient and added nothing for an input.
nodes.forEach((node, i) => (node.nothing || []).forEach(([input, own]) => nodes[node.inputs[input] >> 1].missing.push({ node: i, input, own })));
// Ops whose own backward is wrong, whatever came after them.
const guilty = new Set(nodes.flatMap((node) => [...node.parts, ...node.missing].filter((part) => part.own && part.own.ok === false).map((part) => part.node)));

// ---- the page's self-check ----

const total = (x) => (Array.isArray(x) ? x.reduce((sum, v) => sum + v, 0) : x.sum);
const magnitude = (x) => (Array.isArray(x) ? x.reduce((sum, v) => sum + Math.abs(v), 0) : x.size);
const finite = (x) => (Array.isArray(x) ? x.every((v) => typeof v === "number") : x !== null && !x.nan && !x.inf && !x.minus_inf);
(function check_all() {
  check("steps", data.order.length, nodes.filter((node) => node.step !== undefined).length, 0);
  nodes.forEach((node, i) => {
    if (node.step === undefined) return;
    check(`place of node ${i + 1} in the order`, data.order[node.step], i, 0);
    const gathered = node.gathered === undefined ? node.gradient : node.gathered;
    if (finite(gathered) && node.parts.every((part) => finite(part.gradient))) {
      const scale = 1 + magnitude(gathered) + node.parts.reduce((sum, part) => sum + magnitude(part.gradient), 0);
      const sum = node.parts.reduce((s, part) => s + total(part.gradient), 0);
      check(`contributions to node ${i + 1}, relative`, (sum - total(gathered)) / scale, 0, 1e-5);
      if (Array.isArray(gathered))
        gathered.forEach((g, k) => check(`element ${k} of node ${i + 1}, relative`,
          (node.parts.reduce((s, part) => s + part.gradient[k], 0) - g) / scale, 0, 1e-5));
    }
    for (const part of node.parts) {
      if (part.node === undefined) continue;
      const consumer = nodes[part.node];
      check(`node ${part.node + 1} runs before node ${i + 1}`, Number(consumer.step < node.step), 1, 0);
    }
  });
  checked();
})();

// ---- numbers and names ----

const size_of = (shape) => shape.reduce((n, d) => n * d, 1);
const num = (v) => (typeof v === "string" ? v : number(v));
function brief(x) {
  if (x === null || x === undefined) return "";
  if (Array.isArray(x)) return x.length === 1 ? num(x[0]) : `[${x.map(num).join(", ")}]`;
  return `${num(x.min)} … ${num(x.max)}`;
}
// Counts such as "1 NaN" are always shown.
function full(x) {
  if (Array.isArray(x)) return brief(x);
  const odd = [["nan", "NaN"], ["inf", "inf"], ["minus_inf", "-inf"]].filter(([key]) => x[key]).map(([key, what]) => `, ${x[key]} ${what}`).join("");
  return `${num(x.min)} … ${num(x.max)}, mean ${num(x.mean)}${odd}; [${x.first.map(num).join(", ")}, …]`;
}
const shape_text = (node) => (node.shape.length === 1 ? `(${node.shape[0]},)` : `(${node.shape.join(", ")})`);
// Makes control and direction characters in names visible.
const visible = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, "\ufffd");
const title_of = (i) => `${visible(nodes[i].op)} ${i + 1}${nodes[i].name ? " " + visible(nodes[i].name) : ""}`;
// A row has room for the end of a long name.
const short_name = (name) => (name.length > 16 && name.split(".").length > 2 ? "…" + name.split(".").slice(-2).join(".") : name);
const values = (x) => make("span", { class: "values" }, full(x));

// ---- state ----

const by_id = (id) => document.getElementById(id);
const last_step = data.order.length;
for (const node of nodes) node.consumer_parts = new Map(node.parts.filter((part) => part.node !== undefined).map((part) => [part.node, part]));
// The first step at which a contribution arrives at a node.
for (const node of nodes) node.first_part = Math.min(...[...node.consumer_parts.keys()].slice(0, 1).map((i) => nodes[i].step));
let step = 0; // so many nodes have had their turn
let chosen = data.root;
const done = (i) => nodes[i].step !== undefined && nodes[i].step < step;
const now = () => (step > 0 ? data.order[step - 1] : -1);

const state = (i) => (i === now() ? "now" : done(i) ? "done" : nodes[i].step === undefined ? "none" : "waiting");
const layer_nodes = (layer) => Array.from({ length: layer.last - layer.first + 1 }, (_, k) => layer.first + k);
const layer_state = (layer) => {
  const i = now();
  if (i >= layer.first && i <= layer.last) return "now";
  return layer.first_step !== undefined && layer.first_step < step ? "done" : "none";
};
const graph = {
  nodes,
  get chosen_row() { return rows ? rows.row_of[chosen] : -1; },
  edge_class: (from, to) => {
    const b = rows.rows[to];
    return typeof b === "number" && done(b) && nodes[b].inputs.some((input) => input >= 0 && !(input & 1) && rows.row_of[input >> 1] === from) ? "flowed" : "";
  },
  lane_class: (r) => {
    const row = rows.rows[r];
    return typeof row === "number" && nodes[row].first_part < step ? "flowed" : "";
  },
  row_class: (r) => {
    const row = rows.rows[r];
    if (typeof row !== "number") return layer_nodes(row).some((i) => guilty.has(i)) ? "wrong" : layer_state(row);
    return guilty.has(row) ? "wrong" : state(row);
  },
  draw_row(row, r) {
    if (typeof row !== "number") {
      const n = row.last - row.first + 1;
      return make("div", { class: `row layer ${r === this.chosen_row ? "chosen" : ""} ${row.open ? "" : layer_state(row)}`, role: "option", style: `padding-left: calc(var(--gutter) + ${6 + 10 * row.depth}px)`,
        "aria-expanded": String(row.open), "data-row": r, onclick: () => { rows.fold(row); } },
        make("span", {}, `${row.open ? "▾" : "▸"} ${visible(row.path)} `, make("span", { class: "soft" }, `${n} node${n === 1 ? "" : "s"}`)));
    }
    const node = nodes[row];
    const near = nodes[chosen].inputs.some((input) => input >> 1 === row && input >= 0) ? "input" : consumers[chosen].includes(row) ? "consumer" : "";
    return make("div", { class: `row ${row === chosen ? "chosen" : near} ${state(row)}`, role: "option", "aria-selected": String(row === chosen), id: `n${row}`, "data-node": row, onclick: () => choose(row) },
      make("span", { title: title_of(row) }, guilty.has(row) ? make("span", { class: "bad", title: "its own backward is wrong" }, "✗ ") : "", make("code", {}, visible(node.op)), " ", make("span", { class: "soft" }, String(row + 1)), node.name ? make("span", { title: visible(node.name) }, ` ${visible(short_name(node.name))}`) : ""),
      make("span", { class: "soft shape" }, shape_text(node)),
      make("span", { class: "number value", title: "value" }, brief(node.value)),
      make("span", { class: "number gradient", title: "gradient" }, done(row) ? [wrong.has(row) ? make("span", { class: "bad" }, "✗ ") : "", `∂ ${brief(node.gradient)}`] : node.step !== undefined ? "·" : wrong.has(row) ? make("span", { class: "bad", title: "a gradient is missing" }, "✗") : ""));
  },
};
let rows;

// ---- the selected node ----

const jump = (i) => make("button", { class: "jump", "data-to": i, onclick: () => choose(i) }, title_of(i));
function verdict(check, shape) {
  if (check === undefined) return make("span", { class: "soft" }, "not made");
  if (typeof check === "string") return make("span", { class: "soft" }, check);
  const along = size_of(shape) > check.numeric.length ? ", where each element moves by the sign of its gradient times a fixed weight" : "";
  const text = check.ok ? `✓ ${brief(check.numeric)}` : `✗ ${brief(check.numeric)} by differences, but ${brief(check.analytic)} by the backward`;
  return make("span", { class: check.ok ? "ok" : "bad verdict" }, text, along && make("span", { class: "soft" }, along), check.note ? ` (${check.note})` : "");
}
function rule_of(part) {
  const rule = data.rules[part.op];
  if (!rule) {
    const consumer = nodes[part.node], inputs = consumer.inputs.map((input, k) => `${"abc"[k] || `input ${k}`}${input < 0 ? "" : ` ${shape_text(nodes[input >> 1])}`}`);
    return make("p", {}, "Rule: the backward of ", make("code", {}, `${visible(part.op)}(${inputs.join(", ")}) → ${shape_text(consumer)}`), ", whose numbers these are.");
  }
  const letters = part.inputs.map((i) => rule.add[Math.min(i, rule.add.length - 1)]);
  return make("p", {}, "Rule: ", make("code", {}, [...new Set(letters)].join("  +  ")), ", as its value is ", make("code", {}, rule.value), ". ", make("span", { class: "soft" }, rule.words));
}
function part_of(part, shape) {
  if (part.node === undefined)
    return make("div", { class: "part" }, make("p", {}, part.op === "backward()" ? "The start: backward() gives the result the gradient " : `From ${visible(part.op)}, which is not of this graph: `, values(part.gradient)));
  const consumer = nodes[part.node], happened = done(part.node), which = part.inputs.map((i) => "abc"[i] || `input ${i}`).join(" and ");
  return make("div", { class: `part ${part.node === now() ? "now" : ""}` },
    make("p", {}, "From ", jump(part.node), `, where it is ${which}`, make("span", { class: "soft" }, ` (step ${consumer.step + 1}${happened ? "" : ", not yet"})`)),
    make("p", {}, "Upstream g: ", values(consumer.gradient)),
    rule_of(part),
    make("p", {}, "Adds: ", values(part.gradient)),
    make("p", {}, "This op alone, by differences: ", verdict(part.own, shape)));
}
function sum_of(node) {
  const gathered = node.gathered === undefined ? node.gradient : node.gathered;
  const line = [];
  if (node.parts.length > 1)
    line.push(make("p", { id: "sum" }, `Sum of ${node.parts.length}: `,
      make("span", { class: "values" }, node.parts.length <= 12 && node.parts.every((part) => Array.isArray(part.gradient) && part.gradient.length === 1)
        ? node.parts.map((part) => num(part.gradient[0])).join(" + ").replaceAll("+ -", "- ") + " = " : ""), values(gathered)));
  if (node.gathered !== undefined) line.push(make("p", { class: "bad" }, "A hook made of it: ", values(node.gradient)));
  return line;
}
// A leaf may have ten thousand contributions: shows some at first, and more on request.
function parts_of(node) {
  const box = make("div", { id: "parts" });
  const show = (from, to) => {
    box.append(...node.parts.slice(from, to).map((part) => part_of(part, node.shape)));
    if (to < node.parts.length) {
      const more = make("button", { onclick: () => { more.remove(); show(to, to + 50); } }, `${node.parts.length - to} more contributions`);
      box.append(more);
    }
  };
  show(0, 12);
  return box;
}
// Ops that should have added something and did not.
const forgotten = (node) => node.missing.filter((part) => part.own.ok === false).map((part) => make("div", { class: "part missing" },
  make("p", {}, "From ", jump(part.node), `, where it is ${"abc"[part.input] || `input ${part.input}`}: `, make("span", { class: "bad" }, "its backward adds nothing.")),
  make("p", {}, "This op alone, by differences: ", verdict(part.own, node.shape))));
function why_none(node, i) {
  if (node.kind === "constant") return "None: it is a constant.";
  if (consumers[i].length === 0 && i !== data.root) return "None: nothing uses it.";
  if (node.missing.some((part) => part.own.ok === false)) return make("span", { class: "bad" }, "None, though there is one: a backward forgets it.");
  if (node.whole && node.whole.ok === false) return make("span", { class: "bad" }, "None, though the result depends on it: a backward forgets something on the way.");
  if (node.missing.length > 0) return "None: the backward of its users adds nothing.";
  return "None: no gradient arrived from the result (its users take it as a constant, get none themselves, or lead elsewhere).";
}
function show_detail() {
  const node = nodes[chosen], title = node.scope ? make("span", { class: "soft" }, ` in ${visible(node.scope)}`) : "";
  const kinds = { leaf: "A leaf: its gradient is added to its grad().", constant: "A constant.", outside: "The result of an op that ran before the function; its own inputs are not shown." };
  const rule = data.rules[node.op];
  const missing = Object.fromEntries(node.nothing || []);
  const inputs = node.inputs.map((input, k) => {
    const part = input < 0 ? undefined : nodes[input >> 1].consumer_parts.get(chosen), shares = part && part.inputs[0] !== k;
    return make("li", {}, `${"abc"[k] || `input ${k}`}: `, input < 0 ? "absent" : jump(input >> 1), input >= 0 && input & 1 ? make("span", { class: "soft" }, " as a constant") : "",
      missing[k] ? [" gets nothing ", verdict(missing[k], nodes[input >> 1].shape)] : part ? (shares ? make("span", { class: "soft" }, ` shares what ${"abc"[part.inputs[0]]} gets`) : [" gets ", values(part.gradient), " ", verdict(part.own, nodes[input >> 1].shape)]) : "");
  });
  by_id("detail").replaceChildren(
    make("h2", {}, make("code", {}, title_of(chosen)), title),
    make("table", {},
      make("tr", {}, make("th", {}, "shape"), make("td", {}, `${shape_text(node)} ${node.float64 ? "float64" : "float32"}`)),
      make("tr", {}, make("th", {}, "value"), make("td", {}, values(node.value), rule && node.kind === "op" ? make("span", { class: "soft" }, ` = ${rule.value}`) : "")),
      make("tr", {}, make("th", {}, "gradient"), make("td", { id: "gradient" }, node.step === undefined ? why_none(node, chosen) : values(node.gradient))),
      make("tr", {}, make("th", {}, "step"), make("td", {}, node.step === undefined ? "–" : `${node.step + 1} of ${last_step}`, node.step !== undefined && node.step !== step - 1 ? [" ", make("button", { onclick: () => go(node.step + 1) }, "go there")] : ""))),
    make("p", { class: "soft" }, kinds[node.kind] || ""),
    node.step === undefined ? "" : make("h3", {}, "Why this gradient"),
    parts_of(node), ...forgotten(node), ...(node.step === undefined ? [] : sum_of(node)),
    node.whole === undefined && node.step === undefined ? "" : make("p", {}, "The whole, by differences of the result: ", verdict(node.whole, node.shape)),
    node.inputs.length > 0 ? make("h3", {}, "Inputs") : "", make("ul", {}, inputs),
    consumers[chosen].length > 0 ? make("h3", {}, "Consumers") : "",
    make("ul", {}, consumers[chosen].slice(0, 40).map((i) => make("li", {}, jump(i))), consumers[chosen].length > 40 ? make("li", { class: "soft" }, `and ${consumers[chosen].length - 40} more`) : ""));
}

// ---- moving ----

function choose(i, reveal = true) {
  chosen = i;
  if (reveal) rows.reveal(i);
  rows.scroll_to(rows.row_of[i]);
  by_id("rows").setAttribute("aria-activedescendant", `n${i}`);
  show_detail();
}
function go(to) {
  step = Math.max(0, Math.min(last_step, to));
  by_id("slider").value = step;
  const i = now();
  if (i < 0)
    by_id("status").replaceChildren("Before the backward pass: only values are known. ", make("kbd", {}, "→"), " starts it at the result.");
  else {
    const added = nodes[i].inputs.map((input) => input >> 1).filter((t, k, all) => t >= 0 && all.indexOf(t) === k && nodes[t].consumer_parts.has(i));
    by_id("status").replaceChildren(`Step ${step} of ${last_step}: `, make("strong", {}, title_of(i)), " has its whole gradient", added.length > 0 ? ` and adds to ${added.map(title_of).join(", ")}.` : ".");
  }
  choose(i < 0 ? data.root : i, false);
}

let matches = [], match = -1;
function search() {
  const text = by_id("search").value.trim().toLowerCase();
  matches = text === "" ? [] : nodes.flatMap((node, i) => (`${node.op} ${i + 1} ${node.name || ""} ${node.scope}`.toLowerCase().includes(text) ? [i] : []));
  match = -1;
  by_id("found").textContent = text === "" ? "" : matches.length === 0 ? "nothing found" : `${matches.length} found`;
}
function next_match(by) {
  if (matches.length === 0) return;
  match = (match + by + matches.length) % matches.length;
  by_id("found").textContent = `${match + 1} of ${matches.length}`;
  choose(matches[match]);
}
function move(by) {
  const row = rows.rows[Math.max(0, Math.min(rows.rows.length - 1, rows.row_of[chosen] + by))];
  if (typeof row === "number") choose(row, false);
  else choose(by < 0 && row.open ? Math.max(0, row.first - 1) : row.first, false);
}
function toggle() {
  const inner = rows.layers.filter((layer) => layer.first <= chosen && chosen <= layer.last);
  const closed = inner.find((layer) => !layer.open);
  if (inner.length === 0) return;
  rows.fold(closed || inner.at(-1));
  rows.scroll_to(rows.row_of[chosen]);
}

// ---- start ----

// The names of ops are shown whole, up to a share of the row.
by_id("rows").style.setProperty("--op", `${nodes.reduce((most, node, i) => Math.max(most, `${visible(node.op)} ${i + 1}`.length), 12)}ch`);
rows = new Rows(by_id("rows"), by_id("space"), graph);
for (const layer of rows.layers) for (let i = layer.first; i <= layer.last; ++i) if (nodes[i].step !== undefined && !(layer.first_step <= nodes[i].step)) layer.first_step = nodes[i].step;
by_id("slider").max = last_step;
by_id("slider").addEventListener("input", (e) => go(Number(e.target.value)));
for (const [id, to] of [["first", () => 0], ["back", () => step - 1], ["next", () => step + 1], ["last", () => last_step]]) by_id(id).addEventListener("click", () => go(to()));
by_id("close").addEventListener("click", () => { rows.fold_all(false); rows.scroll_to(rows.row_of[chosen]); });
by_id("open").addEventListener("click", () => { rows.fold_all(true); rows.scroll_to(rows.row_of[chosen]); });
if (rows.layers.length === 0) by_id("folds").remove();
by_id("search").addEventListener("input", search);
by_id("search").addEventListener("keydown", (e) => {
  if (e.key === "Enter") next_match(e.shiftKey ? -1 : 1);
  if (e.key === "Escape") { e.target.value = ""; search(); by_id("rows").focus(); }
});
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || ["search", "slider"].includes(e.target.id)) return;
  const moves = { ArrowLeft: () => go(step - 1), ArrowRight: () => go(step + 1), Home: () => go(0), End: () => go(last_step),
    ArrowUp: () => move(-1), ArrowDown: () => move(1), "/": () => by_id("search").focus() };
  if (e.key === "Enter" && e.target.tagName !== "BUTTON") moves.Enter = toggle;
  if (moves[e.key]) { e.preventDefault(); moves[e.key](); }
});

const checks_made = nodes.flatMap((node) => [node.whole, ...[...node.parts, ...node.missing].map((part) => part.own)]).filter((c) => c && typeof c === "object");
const agree = checks_made.filter((c) => c.ok).length, ops = nodes.filter((node) => node.kind === "op").length;
by_id("summary").append(`${ops} op${ops === 1 ? "" : "s"}, ${nodes.length - ops} ${nodes.length - ops === 1 ? "leaf or constant" : "leaves and constants"}, result ${full(nodes[data.root].value)}. `,
  checks_made.length === 0 ? "No gradient was compared with differences." : make("span", { class: agree === checks_made.length ? "ok" : "bad" }, `${agree} of ${checks_made.length} gradients agree with differences. `),
  ...(wrong.size > 0 ? [make("span", { id: "wrong" }, ...(guilty.size > 0 ? ["The backward is wrong of ", ...[...guilty].slice(0, 8).flatMap((i) => [jump(i), " "]), "so "] : []),
    `${wrong.size === 1 ? "this gradient is" : "these gradients are"} wrong: `, ...[...wrong].slice(0, 8).flatMap((i) => [jump(i), " "]), wrong.size > 8 ? `and ${wrong.size - 8} more.` : "")] : []));
document.documentElement.dataset.wrong = wrong.size;
go(0);
