// The transformer's part of the playground's page.

let losses = [], step = 0, total = 0, training = false, run = 0;
function say(error) {
  if (!trainer.worker) total = 0;  // it has stopped: what it held is lost
  return Boolean((by_id("trouble").textContent = error || ""));
}
function draw_curve() {
  if (losses.length < 2) return void by_id("curve").replaceChildren();
  const most = Math.max(...losses.map(([, loss]) => loss)), points = losses.map(([step, loss]) => `${((600 * step) / total).toFixed(1)},${(160 - (150 * loss) / most).toFixed(1)}`).join(" ");
  by_id("curve").replaceChildren(make("svg", { viewBox: "0 0 600 160", preserveAspectRatio: "none", role: "img", "aria-label": `The loss over ${total} steps, from ${number(losses[0][1])} to ${number(losses.at(-1)[1])}` },
    make("line", { x1: 0, x2: 600, y1: 160, y2: 160, stroke: "var(--line)" }), make("polyline", { points })), make("p", { class: "soft" }, `The loss: ${number(most)} at the top, 0 at the line.`));
}
function refresh() {
  draw_curve();
  for (const id of ["download", "sample", "attend"]) by_id(id).disabled = total === 0;
  Object.assign(by_id("pause"), { disabled: step >= total, textContent: training ? "Pause" : "Continue" });
}
// A new transformer, or one of a checkpoint.  If there is none, the one before is kept.
async function start(checkpoint, files) {
  training = false;
  ++run;
  const before = by_id("progress").textContent, steps = Number(by_id("steps").value);
  by_id("progress").textContent = "The engine begins …";
  const answer = await trainer.ask({ do: "start", text: by_id("text").value, seed: Number(by_id("seed").value), steps, ...checkpoint }, files);
  if (!say(answer.error)) [losses, step, total] = [[], answer.step, Math.max(steps, answer.step)];
  by_id("progress").textContent = answer.error ? before : checkpoint ? `after ${step} steps of the checkpoint` : `${answer.characters} different characters, ${answer.parameters.toLocaleString("en")} parameters`;
  refresh();
  return !answer.error;
}
async function train() {
  if (training) return;
  training = true;
  refresh();
  const first = losses.length, mine = ++run, began = performance.now();
  while (training && mine === run) {
    const answer = await trainer.ask({ do: "step" });
    if (mine !== run) return;
    if (say(answer.error)) { training = false; break; }
    losses.push([answer.step, answer.loss]);
    step = answer.step + 1;
    const made = losses.length - first, speed = (1000 * made) / (performance.now() - began);
    by_id("progress").textContent = `step ${step} of ${total}, loss ${number(answer.loss)}, ${speed.toFixed(1)} steps a second`;
    if (made % 5 === 0 || made === 1) draw_curve();
    if (made % 50 === 0) { await sample(120); await attend(); }
    if (step >= total) training = false;
  }
  refresh();
}
async function sample(length) {
  const answer = await trainer.ask({ do: "sample", prompt: by_id("prompt").value, length });
  if (!say(answer.error)) by_id("sampled").textContent = by_id("prompt").value + answer.text;
}
let seen;
async function attend() {
  const answer = await trainer.ask({ do: "attention", prompt: by_id("prompt").value || by_id("sampled").textContent.slice(0, 24) });
  if (say(answer.error)) return;
  seen = answer;
  for (const [id, n] of [["layer", seen.layers.length], ["head", seen.layers[0].length]])
    if (by_id(id).options.length !== n) by_id(id).replaceChildren(...Array.from({ length: n }, (_, i) => make("option", { value: i }, String(i))));
  draw_attention();
}
function draw_attention() {
  if (!seen) return;
  const n = seen.characters.length, weights = seen.layers[by_id("layer").value][by_id("head").value], shown = (c) => (c === "\n" ? "↵" : c);
  by_id("attention").replaceChildren(make("table", { "aria-label": "Rows look at columns" }, make("tr", {}, make("th"), seen.characters.map((c) => make("th", { scope: "col" }, shown(c)))),
    seen.characters.map((c, i) => make("tr", {}, make("th", { scope: "row" }, shown(c)), Array.from({ length: n }, (_, j) => make("td", { title: `${shown(c)} looks at ${shown(seen.characters[j])}: ${number(weights[i * n + j])}`, style: `background: color-mix(in srgb, var(--accent) ${(100 * weights[i * n + j]).toFixed(0)}%, var(--panel))` }))))));
}
on("train", "click", async () => { if (await start()) train(); });
on("pause", "click", () => { if (training) training = false; else train(); });
on("sample", "click", () => sample(300));
on("attend", "click", attend);
for (const id of ["layer", "head"]) on(id, "change", draw_attention);
on("download", "click", async () => {
  const answer = await trainer.ask({ do: "save", path: "/tmp/checkpoint.safetensors" }, { get: true });
  if (say(answer.error)) return;
  const link = make("a", { href: URL.createObjectURL(new Blob([answer.file])), download: "playground.safetensors" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
});
on("upload", "change", async ({ target }) => {
  const [file] = target.files;
  if (!file) return;
  target.value = "";  // the same file may be chosen again
  if (file.size > 2 ** 26) return say(`${file.name} has ${file.size} bytes, more than any checkpoint of this page`);
  const read = await file.arrayBuffer().catch((error) => say(`${file.name} cannot be read: ${error.message}`));
  if (read instanceof ArrayBuffer) await start({ path: "/tmp/checkpoint.safetensors" }, { put: new Uint8Array(read) });
});
