// The playground's page: it asks the engine (playground.hpp) and shows the answers.
const by_id = (id) => document.getElementById(id);
const on = (id, event, f) => by_id(id).addEventListener(event, f);
const source = URL.createObjectURL(new Blob([by_id("engine").textContent], { type: "text/javascript" }));

// An engine in a worker of its own, so that no request can hang the page.
class Engine {
  constructor(seconds) { this.seconds = seconds; }
  begin() {
    const worker = (this.worker = new Worker(source));
    this.waiting = new Map();
    worker.onmessage = ({ data }) => {
      if (worker !== this.worker) return;
      if (data.broken !== undefined) return this.stop(`The engine has stopped, and begins anew; what it held is lost. If the page ran out of memory, take a smaller text. (${data.broken})`);
      this.waiting.get(data.id)?.(data);
      this.waiting.delete(data.id);
    };
    worker.onerror = (event) => worker === this.worker && this.stop(`The engine cannot run here: ${event.message || "this browser has no WebAssembly with SIMD and exceptions"}`);
  }
  stop(why) {
    this.worker.terminate();
    this.worker = undefined;
    for (const done of this.waiting.values()) done({ answer: { error: why } });
  }
  async ask(request, { put, get } = {}) {
    if (!this.worker) this.begin();
    const id = (this.last = (this.last || 0) + 1);
    const limit = this.seconds && setTimeout(() => this.waiting.has(id) && this.stop(`The engine was stopped after ${this.seconds} seconds: the formula is too large for the page.`), 1000 * this.seconds);
    const { answer, file } = await new Promise((done) => { this.waiting.set(id, done); this.worker.postMessage({ id, request, put, get }); });
    clearTimeout(limit);
    return get ? { ...answer, file } : answer;
  }
}
const formulas = new Engine(20), trainer = new Engine(0);

// ---- tabs ----
const tabs = [...document.querySelectorAll("[role=tab]")];
function show_tab(tab) {
  for (const t of tabs) {
    t.setAttribute("aria-selected", t === tab);
    t.tabIndex = t === tab ? 0 : -1;
    by_id(t.getAttribute("aria-controls")).hidden = t !== tab;
  }
}
tabs.forEach((tab, i) => {
  tab.addEventListener("click", () => show_tab(tab));
  tab.addEventListener("keydown", ({ key }) => {
    const to = tabs[i + { ArrowRight: 1, ArrowLeft: -1 }[key]];
    if (to) { show_tab(to); to.focus(); }
  });
});

// ---- a formula and its leaves ----
let leaves = [];
const problem = (what) => ({ do: what, formula: by_id("formula").value, leaves });
const count = (shape) => shape.reduce((n, size) => n * size, 1);

function leaf_of(leaf) {
  const columns = leaf.shape.at(-1) ?? 1, rows = count(leaf.shape) / columns, block = leaf.shape.at(-2) ?? 1;
  const place = (k) => leaf.shape.map((size, d) => Math.floor(k / count(leaf.shape.slice(d + 1))) % size).join(", ");
  const cell = (k) => make("td", {}, make("input", { value: leaf.cells[k], "aria-label": `${leaf.name} (${place(k)})`, spellcheck: "false", oninput: (e) => { leaf.cells[k] = e.target.value.trim(); changed(); } }),
    make("span", { class: "gradient", "data-gradient": `${leaf.name} ${k}` }));
  const resize = (e) => {
    leaf.shape = e.target.value.split(",").filter((s) => s.trim()).map(Number);
    if (leaf.shape.every((n) => n >= 1) && count(leaf.shape) <= 1024) leaf.cells = Array.from({ length: count(leaf.shape) }, (_, k) => leaf.cells[k] ?? "1");
    changed();
    if (leaf.cells.length === count(leaf.shape)) draw_leaves(); // (else the engine says what is wrong with the shape)
  };
  return make("div", { class: "leaf panel", "data-leaf": leaf.name },
    make("div", {}, make("code", {}, leaf.name), make("label", {}, "shape ", make("input", { class: "shape", placeholder: "number", value: leaf.shape.join(", "), onchange: resize })),
      make("label", {}, make("input", { type: "checkbox", checked: leaf.constant, onchange: (e) => { leaf.constant = e.target.checked; changed(); } }), " constant"),
      make("button", { "aria-label": `Remove ${leaf.name}`, onclick: () => { leaves = leaves.filter((l) => l !== leaf); draw_leaves(); changed(); } }, "×")),
    make("table", { role: "presentation" }, Array.from({ length: rows }, (_, r) => make("tr", { class: r > 0 && r % block === 0 ? "gap" : "" }, Array.from({ length: columns }, (_, c) => cell(r * columns + c))))));
}
const draw_leaves = () => by_id("leaves").replaceChildren(...leaves.map(leaf_of));
function open_formula(example) {
  by_id("formula").value = example.formula;
  leaves = structuredClone(example.leaves);
  draw_leaves();
  changed(0);
}

// The last change is shown; one request is under way at a time.
let timer, busy = false, again = false;
function changed(wait = 150) {
  by_id("verdict").replaceChildren();
  clearTimeout(timer);
  timer = setTimeout(evaluate, wait);
}
async function evaluate() {
  if ((again = busy)) return;
  busy = true;
  const answer = await formulas.ask(problem("evaluate"));
  busy = false;
  if (again) return evaluate();
  by_id("error").replaceChildren(answer.error ? `${answer.error} ` : "", answer.unknown ? make("button", { onclick: () => { leaves.push({ name: answer.unknown, shape: [], cells: ["1"] }); draw_leaves(); changed(0); } }, `Make ${answer.unknown} a leaf`) : "");
  for (const span of document.querySelectorAll("[data-gradient]")) {
    const [name, k] = span.dataset.gradient.split(" "), gradient = answer.gradients?.[name];
    span.textContent = gradient ? `∂ ${typeof gradient[k] === "string" ? gradient[k] : number(gradient[k])}` : "";
  }
  if (answer.error) return void by_id("result").replaceChildren("The graph below is that of the last formula that worked.");
  by_id("result").replaceChildren(answer.shape.length > 0 ? `The result has the shape (${answer.shape.join(", ")}): its backward starts with ones, as that of its sum.` : "",
    answer.wrong > 0 ? make("span", { class: "bad" }, ` ${answer.wrong} gradient${answer.wrong === 1 ? " is" : "s are"} wrong: the graph says which.`) : "");
  show_graph(answer.html);
}
// The graph page takes the place of the one before it, at the same step and node.
function show_graph(html) {
  const old = by_id("graphs").querySelector("iframe:not(.coming)");
  by_id("graphs").querySelector("iframe.coming")?.remove();
  const frame = make("iframe", { class: "coming", title: "The graph of the formula, step by step" });
  frame.srcdoc = html;
  frame.addEventListener("load", () => {
    const page = frame.contentDocument, slider = page.getElementById("slider"), before = old?.contentDocument?.getElementById("slider");
    page.querySelector("h1").remove();
    page.body.style.padding = ".75rem";
    slider.value = before && before.max === slider.max ? before.value : slider.max;
    slider.dispatchEvent(new Event("input"));
    const chosen = before && old.contentDocument.getElementById("rows").getAttribute("aria-activedescendant");
    if (chosen && before.max === slider.max) page.getElementById(chosen)?.click();
    old?.remove();
    frame.classList.remove("coming");
    document.documentElement.dataset.shown = Number(document.documentElement.dataset.shown || 0) + 1;
  });
  by_id("graphs").append(frame);
}

const choices = (id, list) => by_id(id).append(...list.map((one, i) => make("option", { value: i }, one.title)));
choices("examples", data.formulas);
choices("mistakes", data.mistakes);
on("examples", "change", (e) => { by_id("mistakes").value = ""; open_formula(data.formulas[e.target.value]); });
// Within the formula if it has the op, else as a formula of its own; "none" takes it out again.
on("mistakes", "change", (e) => {
  const now = by_id("formula"), mistake = data.mistakes[e.target.value];
  const right = data.mistakes.filter((m) => m.replaces).reduce((text, m) => text.replaceAll(m.by, m.replaces), now.value);
  if (!mistake) now.value = right;
  else if (mistake.replaces && right.includes(mistake.replaces)) now.value = right.replace(mistake.replaces, mistake.by);
  else return open_formula(mistake);
  changed(0);
});
on("formula", "input", () => changed());
on("check", "click", async () => {
  by_id("verdict").replaceChildren("The engine compares with differences …");
  const answer = await formulas.ask(problem("check"));
  by_id("verdict").replaceChildren(answer.error ? make("p", { class: "bad" }, answer.error)
    : make("div", {}, make("p", { class: answer.ok ? "good" : "bad" }, `${answer.ok ? "✓" : "✗"} ${answer.message}`), make("ul", {}, Object.entries(answer.leaves).map(([name, line]) => make("li", {}, make("code", {}, name), `: ${line}`)))));
});

// ---- exercises ----
const exercise = () => data.exercises[by_id("exercises").value];
function open_exercise() {
  const { text, formula, leaves } = exercise();
  by_id("task").textContent = text;
  by_id("given").textContent = formula;
  by_id("judged").replaceChildren();
  by_id("answers").replaceChildren(...leaves.map((leaf) => make("label", {}, make("code", {}, `∂ ${leaf.name}`), make("input", { name: leaf.name, autocomplete: "off", spellcheck: "false" }))), make("button", {}, "Check"));
}
choices("exercises", data.exercises);
on("exercises", "change", open_exercise);
on("open", "click", () => { open_formula(exercise()); show_tab(tabs[0]); });
on("answers", "submit", async (event) => {
  event.preventDefault();
  const answer = await formulas.ask({ ...exercise(), do: "answer", answers: Object.fromEntries(new FormData(event.target)) });
  by_id("judged").replaceChildren(make("span", { class: answer.ok ? "good" : "bad" }, answer.error || `${answer.ok ? "✓" : "✗"} ${answer.message}`));
});

open_exercise();
open_formula(data.formulas[0]);
checked();
