// The rows: one for each node, or for a closed layer.  Only visible rows are in the document. Lanes
// to the left of the rows lead from a value's origin to its last use.
const row_height = 30, lane_width = 12, most_lanes = 9;

// Layers, as runs of neighbouring nodes: {path, depth, first, last, open}.  A row is a layer or a node's index.
function layers_of(nodes) {
  const layers = [], stack = [];
  nodes.forEach((node, i) => {
    const parts = node.scope === "" ? [] : node.scope.split(".");
    let depth = 0;
    while (depth < stack.length && depth < parts.length && stack[depth].part === parts[depth]) ++depth;
    while (stack.length > depth) stack.pop().last = i - 1;
    for (; depth < parts.length; ++depth) {
      const layer = { part: parts[depth], path: parts.slice(0, depth + 1).join("."), depth, first: i, last: nodes.length - 1, open: true };
      layers.push(layer);
      stack.push(layer);
    }
  });
  return layers;
}

class Rows {
  constructor(box, space, graph) {
    Object.assign(this, { box, space, graph });
    this.layers = layers_of(graph.nodes);
    this.row_of = new Int32Array(graph.nodes.length);
    this.window = make("div", { class: "window" });
    space.append(this.window);
    box.addEventListener("scroll", () => this.later());
    new ResizeObserver(() => this.later()).observe(box);
    this.lay_out();
  }

  // The rows, and the lane of each row's value: in one pass over nodes and edges.
  lay_out() {
    const { nodes } = this.graph, rows = [];
    let next = 0;
    for (let i = 0; i < nodes.length; ) {
      let closed;
      while (next < this.layers.length && this.layers[next].first === i && !closed) {
        const layer = this.layers[next++];
        rows.push(layer);
        if (!layer.open) closed = layer;
      }
      if (closed) {
        for (; i <= closed.last; ++i) this.row_of[i] = rows.length - 1;
        while (next < this.layers.length && this.layers[next].first <= closed.last) ++next;
      } else {
        this.row_of[i] = rows.length;
        rows.push(i++);
      }
    }
    this.rows = rows;
    this.last_use = Int32Array.from(rows, (_, r) => r);
    this.sources = rows.map(() => []); // rows that a row takes values from
    nodes.forEach((node, i) => {
      const to = this.row_of[i];
      for (const input of node.inputs) {
        const from = input < 0 ? to : this.row_of[input >> 1];
        if (from === to) continue;
        this.last_use[from] = Math.max(this.last_use[from], to);
        if (!this.sources[to].includes(from)) this.sources[to].push(from);
      }
    });
    this.lane = new Int8Array(rows.length).fill(-1);
    this.lanes = Array.from({ length: most_lanes }, () => []); // rows whose values are on a lane, in order
    const free_from = new Int32Array(most_lanes);
    for (let r = 0; r < rows.length; ++r) {
      if (this.last_use[r] === r) continue;
      const lane = free_from.findIndex((row) => row <= r);
      if (lane < 0) continue;
      free_from[lane] = this.last_use[r];
      this.lane[r] = lane;
      this.lanes[lane].push(r);
    }
    this.used_lanes = 1 + this.lanes.reduce((most, list, lane) => (list.length > 0 ? lane : most), 0);
    this.gutter = (this.used_lanes + 1) * lane_width;
    this.box.style.setProperty("--gutter", `${this.gutter}px`);
    this.space.style.height = `${rows.length * row_height}px`;
  }
  arrange() {
    this.lay_out();
    this.draw();
  }

  later() {
    if (!this.waiting) this.waiting = requestAnimationFrame(() => ((this.waiting = 0), this.draw()));
  }

  draw() {
    const top = Math.max(0, Math.floor(this.box.scrollTop / row_height) - 4);
    const end = Math.min(this.rows.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / row_height) + 4);
    this.window.style.transform = `translateY(${top * row_height}px)`;
    const drawn = [this.edges(top, end)];
    for (let r = top; r < end; ++r) drawn.push(this.graph.draw_row(this.rows[r], r));
    this.window.replaceChildren(...drawn);
  }

  dot(r) {
    return ((this.lane[r] < 0 ? this.used_lanes : this.lane[r]) + 0.5) * lane_width;
  }

  edges(top, end) {
    const svg = make("svg", { class: "edges", width: this.gutter, height: (end - top) * row_height, "aria-hidden": "true" });
    const middle = (r) => (r - top + 0.5) * row_height;
    const { chosen_row, edge_class } = this.graph;
    const late = []; // drawn over the rest
    this.lanes.forEach((list) => {
      let low = 0, high = list.length; // the first value whose last use is in sight or below
      while (low < high) {
        const at = (low + high) >> 1;
        if (this.last_use[list[at]] < top) low = at + 1;
        else high = at;
      }
      for (; low < list.length && list[low] < end; ++low) {
        const r = list[low], of_chosen = r === chosen_row;
        const from = Math.max(list[low], top - 1), to = Math.min(this.last_use[r] - 1, end);
        if (to > from) {
          const line = make("path", { d: `M${this.dot(r)} ${middle(from)}V${middle(to)}`, class: of_chosen ? "chosen" : this.graph.lane_class(r) });
          of_chosen ? late.push(line) : svg.append(line);
        }
      }
    });
    for (let r = top; r < Math.min(end + 1, this.rows.length); ++r)
      for (const from of this.sources[r]) {
        if (this.lane[from] < 0 && from !== r - 1 && r !== chosen_row && from !== chosen_row) continue; // no lane was left
        const x = this.dot(from), y = middle(r), above = middle(r - 1);
        const touches = r === chosen_row || from === chosen_row;
        const path = make("path", { d: `M${x} ${above}C${x} ${y} ${this.dot(r)} ${above} ${this.dot(r)} ${y}`,
          class: [touches ? "chosen" : "", edge_class(from, r)].join(" ") });
        touches ? late.push(path) : svg.append(path);
      }
    svg.append(...late);
    for (let r = top; r < end; ++r)
      if (!this.rows[r].open) svg.append(make("circle", { cx: this.dot(r), cy: middle(r), r: typeof this.rows[r] === "number" ? 4 : 5, class: this.graph.row_class(r) }));
    return svg;
  }

  scroll_to(row) {
    const y = row * row_height, { scrollTop, clientHeight } = this.box;
    if (y < scrollTop + row_height || y > scrollTop + clientHeight - 2 * row_height)
      this.box.scrollTop = Math.max(0, y - clientHeight / 2 + row_height / 2);
    this.draw();
  }

  fold(layer) {
    layer.open = !layer.open;
    this.arrange();
  }
  fold_all(open) {
    for (const layer of this.layers) layer.open = open;
    this.arrange();
  }
  // Opens the layers that hide a node.
  reveal(node) {
    const closed = this.layers.filter((l) => !l.open && l.first <= node && node <= l.last);
    for (const layer of closed) layer.open = true;
    if (closed.length > 0) this.arrange();
  }
}
