"use strict";
// Shared by all pages: the data, elements, numbers, and a check of the page itself.
const data = JSON.parse(document.getElementById("data").textContent);

// make("td", {class: "number", onclick: f}, "text", child...): texts are never parsed as HTML.
function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "rect", "line", "circle", "text", "title", "polyline"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((c) => c !== undefined && c !== null));
  return element;
}

// Four significant digits, as the program prints them.
function number(x) {
  if (x === null || x === undefined) return "nan"; // JSON has neither NaN nor infinity
  if (x === 0) return "0";
  const size = Math.abs(x);
  return size >= 1e5 || size < 1e-3 ? x.toExponential(3) : String(Number(x.toPrecision(4)));
}

// A page compares what it computes with the program's numbers in `data`:
// document.documentElement.dataset.checks is "120 of 120", and differences are listed at the top.
const checks = { made: 0, wrong: [] };
function check(what, mine, programs, tolerance = 1e-4) {
  ++checks.made;
  if (!(Math.abs(mine - programs) <= tolerance * (1 + Math.abs(programs))))
    checks.wrong.push(`${what}: ${mine} here, ${programs} in the program`);
}
function checked() {
  document.documentElement.dataset.checks = `${checks.made - checks.wrong.length} of ${checks.made}`;
  if (checks.wrong.length > 0)
    document.body.prepend(make("p", { class: "bad", role: "alert" }, `This page contradicts the program in ${checks.wrong.length} of ${checks.made} numbers: ${checks.wrong[0]}`));
}
