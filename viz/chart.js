// Charts (viz/chart.hpp): shows the values of all series at the pointer or at the place chosen by
// arrow keys.
const PALETTE = 7;

class Chart {
  constructor(figure) {
    const chart = JSON.parse(figure.dataset.chart);
    this.label = chart.x;
    this.plot = figure.querySelector("svg.plot");
    this.width = Number(this.plot.dataset.width);
    this.height = Number(this.plot.getAttribute("height"));
    const ends = (name) => this.plot.dataset[name].split(" ").map(Number);
    this.x_ends = ends("x");
    this.y_ends = ends("y");
    this.series = chart.series;
    this.caption = figure.querySelector("figcaption");
    this.hint = this.caption.textContent;
    // All places with a value, in order.
    this.stops = [...new Set(this.series.flatMap((s) => s.xs))].filter((x) => x !== null).sort((a, b) => a - b);
    this.at = -1;
    this.verify();
    const svg = figure.querySelector("svg.picture");
    for (const kind of ["pointermove", "pointerdown"]) svg.addEventListener(kind, (event) => this.point(event));
    svg.addEventListener("pointerleave", () => document.activeElement !== figure && this.leave());
    figure.addEventListener("blur", () => this.leave());
    figure.addEventListener("keydown", (event) => this.key(event));
    figure.tabIndex = 0;
  }
  x(value) { return ((value - this.x_ends[0]) / (this.x_ends[1] - this.x_ends[0])) * this.width; }
  y(value) {
    const [low, high] = this.y_ends, scaled = this.plot.dataset.log ? Math.log10(Math.max(value, 0)) : value;
    return Math.min(1e5, this.height - ((scaled - low) / (high - low)) * this.height); // (the program's far, which a 0 is below a logarithmic axis)
  }
  // Hovering shows the numbers that the program has drawn.
  verify() {
    this.series.forEach((s, i) => {
      const path = this.plot.querySelector(`path[data-line="${i}"]`).getAttribute("d"); // of straight lines
      const drawn = [...path.matchAll(/(-?[\d.]+) (-?[\d.]+)/g)].map((m) => [Number(m[1]), Number(m[2])]);
      const mine = s.xs.map((x, k) => [x, s.ys[k]]).filter(([x, y]) => x !== null && y !== null).map(([x, y]) => [this.x(x), this.y(y)]);
      // Both are in one order: each drawn point is found after the one before it.
      let at = 0;
      for (const [x, y] of drawn) {
        const same = (p) => Math.abs(p[0] - x) < 0.06 && (Math.abs(p[1] - y) < 0.06 || Math.abs(p[1]) > 9e4);
        while (at < mine.length && !same(mine[at])) ++at;
        check(`${s.name}: where a point is drawn, in pixels`, at < mine.length ? mine[at++][0] : NaN, x, 0.06);
      }
    });
  }
  // The index in `values` of the nearest to x.
  nearest(values, x) {
    let best = -1;
    values.forEach((v, k) => {
      if (v !== null && (best < 0 || Math.abs(v - x) < Math.abs(values[best] - x))) best = k;
    });
    return best;
  }
  point(event) {
    const [low, high] = this.x_ends, at = this.plot.getScreenCTM(); // (its box would hold what is cut off, too)
    this.show(this.nearest(this.stops, low + ((event.clientX - at.e) / at.a / this.width) * (high - low)));
  }
  key(event) {
    const last = this.stops.length - 1, step = event.shiftKey ? Math.ceil(last / 20) : 1;
    const to = { ArrowRight: this.at + step, ArrowLeft: this.at < 0 ? last : this.at - step, Home: 0, End: last }[event.key];
    if (event.key === "Escape") this.leave();
    if (to === undefined) return;
    event.preventDefault();
    this.show(Math.max(0, Math.min(last, to)));
  }
  leave() {
    this.at = -1;
    this.mark?.remove();
    this.caption.replaceChildren(this.hint);
  }
  show(at) {
    if (at < 0) return;
    this.at = at;
    const x = this.stops[at], near = 4 / this.width * (this.x_ends[1] - this.x_ends[0]);
    this.mark?.remove();
    this.mark = make("g", {}, make("path", { class: "cursor", d: `M${this.x(x)} 0V${this.height}` }));
    const said = [];
    this.series.filter((s) => s.name).forEach((s) => {
      const k = this.nearest(s.xs, x);
      if (k < 0 || Math.abs(s.xs[k] - x) > near) return;
      const y = s.ys[k];
      if (y !== null) this.mark.append(make("circle", { class: "point", r: 4, cx: this.x(s.xs[k]), cy: this.y(y), style: `fill: var(--series-${s.color % PALETTE})` }));
      const elsewhere = s.xs[k] !== x ? ` (${this.label} ${s.xs[k]})` : "";
      said.push(make("span", {}, make("i", { style: `background: var(--series-${s.color % PALETTE})` }),
        `${s.name} `, make("span", { class: "number" }, y === null ? "not finite" : number(y)), elsewhere));
    });
    this.plot.append(this.mark);
    this.caption.replaceChildren(make("b", {}, `${this.label} ${x}`), ...said);
  }
}

const charts = [...document.querySelectorAll("figure.chart")].map((figure) => new Chart(figure));
checked();
