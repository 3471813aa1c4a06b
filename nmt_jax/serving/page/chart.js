// A line chart of several series: axes with ticks, a legend, and the values where the pointer or the arrow keys are.

import { svg } from "/page/attention.js";
import { element } from "/page/page.js";

const HEIGHT = 340;
const MARGIN = { top: 12, right: 16, bottom: 42, left: 64 };
const MOST_POINTS = 2000; // of a line; of more, the smallest and the largest value of each group are drawn
export const COLOURS = 8; // classes series-0 …

// Returns a chart; `draw(series, options)` shows series of {name, colour, points: [[step, value], …]}.
export function lineChart() {
  const picture = svg("svg", { class: "chart", tabindex: 0, role: "img" });
  const readout = element("div", { class: "readout", "aria-live": "polite" });
  const legend = element("ul", { class: "legend" });
  const node = element("div", { class: "chart-box" }, legend, picture, readout);
  let state = { series: [], logarithmic: false, title: "" };
  let cursor = null; // a step

  const draw = (series, options = {}) => {
    state = { ...state, series, ...options };
    legend.replaceChildren(...series.map((one) => element("li", {},
      element("span", { class: `swatch series-${one.colour}` }), one.name, one.note ? element("span", { class: "quiet" }, ` ${one.note}`) : "")));
    paint(picture, state, node.clientWidth || 640);
    point(cursor);
  };

  const steps = () => [...new Set(state.series.flatMap((one) => one.points.map(([step]) => step)))].sort((a, b) => a - b);

  // Shows the values of all series at the last step that each has up to `step`.
  const point = (step) => {
    cursor = step;
    picture.querySelectorAll(".cursor").forEach((old) => old.remove());
    const scales = picture.scales;
    if (step === null || !scales) return readout.replaceChildren();
    const x = scales.x(step);
    picture.append(svg("line", { class: "cursor", x1: x, x2: x, y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom }));
    const values = state.series.flatMap((one) => {
      const at = one.points.findLast(([other]) => other <= step);
      if (!at) return [];
      const y = scales.y(at[1]);
      if (Number.isFinite(y)) picture.append(svg("circle", { class: `cursor series-${one.colour}`, cx: scales.x(at[0]), cy: y, r: 4 }));
      return [element("span", {}, element("span", { class: `swatch series-${one.colour}` }), `${one.name}: ${short(at[1])}`,
        at[0] === step ? "" : element("span", { class: "quiet" }, ` at ${at[0].toLocaleString("en")}`))];
    });
    return readout.replaceChildren(element("strong", {}, `step ${step.toLocaleString("en")}`), ...values);
  };

  const nearest = (event) => {
    const scales = picture.scales;
    if (!scales) return;
    const box = picture.getBoundingClientRect();
    const x = (event.clientX - box.left) * scales.width / box.width;
    const all = steps();
    if (all.length) point(all.reduce((best, step) => Math.abs(scales.x(step) - x) < Math.abs(scales.x(best) - x) ? step : best));
  };
  picture.addEventListener("pointermove", nearest);
  picture.addEventListener("pointerdown", nearest);
  picture.addEventListener("pointerleave", () => document.activeElement !== picture && point(null));
  picture.addEventListener("blur", () => point(null));
  picture.addEventListener("focus", () => cursor === null && steps().length && point(steps().at(-1)));
  picture.addEventListener("keydown", (event) => {
    const all = steps();
    const at = all.indexOf(cursor);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || !all.length) return;
    event.preventDefault();
    point(all[Math.min(Math.max(to, 0), all.length - 1)]);
  });
  new ResizeObserver(() => draw(state.series)).observe(node);
  return { node, draw };
}

function paint(picture, { series, logarithmic, title }, width) {
  picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  picture.setAttribute("aria-label", `${title} over the steps; the arrow keys show values`);
  const shown = series.map((one) => ({ ...one, points: logarithmic ? one.points.filter(([, value]) => value > 0) : one.points }));
  const points = shown.flatMap((one) => one.points);
  picture.replaceChildren();
  picture.scales = null;
  if (!points.length) {
    picture.append(text("no values yet", { x: width / 2, y: HEIGHT / 2, "text-anchor": "middle" }));
    return;
  }
  const [left, right] = extent(points.map(([step]) => step));
  const [low, high] = extent(points.map(([, value]) => logarithmic ? Math.log10(value) : value));
  const x = scale(left, right, MARGIN.left, width - MARGIN.right);
  const linear = scale(low - 0.03 * (high - low), high + 0.03 * (high - low), HEIGHT - MARGIN.bottom, MARGIN.top);
  const y = (value) => linear(logarithmic ? Math.log10(value) : value);
  picture.scales = { x, y, width };
  const bottom = HEIGHT - MARGIN.bottom;
  for (const tick of ticks(left, right, Math.max(2, Math.floor(width / 110)))) {
    picture.append(svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: MARGIN.top, y2: bottom }),
      text(tick.toLocaleString("en"), { x: x(tick), y: bottom + 18, "text-anchor": "middle" }));
  }
  for (const tick of logarithmic ? powers(low, high) : ticks(low, high, 6)) {
    const at = y(tick);
    picture.append(svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at }),
      text(short(tick), { x: MARGIN.left - 8, y: at + 4, "text-anchor": "end" }));
  }
  picture.append(svg("path", { class: "axis", d: `M ${MARGIN.left} ${MARGIN.top} V ${bottom} H ${width - MARGIN.right}` }),
    text("step", { x: (MARGIN.left + width - MARGIN.right) / 2, y: HEIGHT - 6, "text-anchor": "middle" }));
  for (const one of shown) {
    if (!one.points.length) continue;
    const places = thinned(one.points).map(([step, value]) => `${x(step).toFixed(1)} ${y(value).toFixed(1)}`);
    picture.append(svg("path", { class: `line series-${one.colour}`, d: `M ${places.join(" L ")}` }));
    if (places.length <= 60) {
      for (const place of places) {
        const [cx, cy] = place.split(" ");
        picture.append(svg("circle", { class: `dot series-${one.colour}`, cx, cy, r: 2.5 }));
      }
    }
  }
}

function text(content, attributes) {
  const node = svg("text", attributes);
  node.textContent = content;
  return node;
}

// The smallest and the largest of some numbers; different from one another.
function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (low < high) return [low, high];
  const space = Math.abs(low) * 0.1 || 1;
  return [low - space, high + space];
}

function scale(low, high, from, to) {
  return (value) => from + (value - low) / (high - low) * (to - from);
}

// About `count` round numbers between two numbers.
export function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((one) => one >= rough);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

// Powers of ten between two exponents; with few of them, also what is two and five times as large.
function powers(low, high) {
  const digits = high - low > 2 ? [1] : high - low > 0.5 ? [1, 2, 5] : null;
  if (!digits) return ticks(10 ** low, 10 ** high, 5);
  const exponents = Array.from({ length: Math.floor(high) - Math.floor(low) + 1 }, (_, index) => Math.floor(low) + index);
  return exponents.flatMap((exponent) => digits.map((digit) => Number((digit * 10 ** exponent).toPrecision(12))))
    .filter((value) => value >= 10 ** low && value <= 10 ** high);
}

function thinned(points) {
  if (points.length <= MOST_POINTS) return points;
  const size = Math.ceil(points.length / (MOST_POINTS / 2));
  const kept = [];
  for (let first = 0; first < points.length; first += size) {
    const group = points.slice(first, first + size);
    const low = group.reduce((best, one) => one[1] < best[1] ? one : best);
    const high = group.reduce((best, one) => one[1] > best[1] ? one : best);
    kept.push(...low === high ? [low] : [low, high].sort((a, b) => a[0] - b[0]));
  }
  return kept;
}

// A number with at most four digits that matter.
export function short(value) {
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
}
