// Metrics of vectors: the matrix of similarities with the greedy matches, and the transport plan as flows.

import { svg } from "/page/attention.js";
import { linked, sentences } from "/page/linked.js";
import { element } from "/page/page.js";

const MOST_CELLS = 100; // rows and columns of a matrix
const MOST_FLOWS = 40; // rows of the table of flows

// Rows are the hypothesis; the largest similarity of a row is framed, that of a column has a dot.
export function similarity(one) {
  const { matrix, weights } = one;
  const { nodes, sides } = sentences(one);
  const rows = matrix.map((row) => row.indexOf(Math.max(...row)));
  const columns = one.reference.map((_, j) => matrix.reduce((best, row, i) => row[j] > matrix[best][j] ? i : best, 0));
  linked(sides, (i, j) => rows[i] === j || columns[j] === i ? Math.max(matrix[i][j], 0.15) : 0);
  const body = matrix.slice(0, MOST_CELLS).map((row, i) => element("tr", {}, element("th", { scope: "row", class: weights[0][i] ? "" : "quiet" }, one.hypothesis[i]),
    ...row.slice(0, MOST_CELLS).map((value, j) => {
      const node = element("td", { class: `cell${rows[i] === j ? " row-best" : ""}${columns[j] === i ? " column-best" : ""}` }, value.toFixed(2).replace("0.", "."));
      node.style.setProperty("--weight", Math.round(Math.max(value, 0) * 90) / 100);
      node.title = `${one.hypothesis[i]} – ${one.reference[j]}: ${value.toFixed(4)}`;
      return node;
    })));
  const head = element("tr", {}, element("td"), ...one.reference.slice(0, MOST_CELLS).map((word, j) => element("th", { scope: "col", class: weights[1][j] ? "column" : "column quiet" },
    element("span", {}, word))));
  const cut = Math.max(matrix.length, one.reference.length) > MOST_CELLS;
  return [...nodes,
    ...cut ? [element("p", {}, `The first ${MOST_CELLS} rows and columns of ${matrix.length} × ${one.reference.length}:`)] : [],
    element("p", { class: "quiet" }, "Framed: the largest similarity of a row (precision). Dotted: that of a column (recall). Grey words have no weight."),
    element("div", { class: "scroll" }, element("table", { class: "similarity" }, element("thead", {}, head), element("tbody", {}, ...body)))];
}

// Lines from words to words; the wider, the more mass moves, the fainter, the farther.
export function flow(one) {
  const { nodes, sides } = sentences(one);
  const { moved, cost } = one;
  const largest = Math.max(...moved.flat(), Number.EPSILON);
  const farthest = Math.max(...cost.flat(), Number.EPSILON);
  linked(sides, (i, j) => moved[i][j] / largest);
  const flows = moved.flatMap((row, i) => row.map((mass, j) => ({ i, j, mass, distance: cost[i][j] })))
    .filter((one) => one.mass > 1e-6).sort((a, b) => b.mass * b.distance - a.mass * a.distance);
  const height = Math.max(one.hypothesis.length, one.reference.length);
  const at = (position, length) => (position + 0.5) * height / length;
  const picture = svg("svg", { class: "flow", viewBox: `0 0 24 ${height}`, role: "img", "aria-label": "Transport plan" });
  for (const { i, j, mass, distance } of flows) {
    const [y, z] = [at(i, one.hypothesis.length), at(j, one.reference.length)];
    const line = svg("path", {
      d: `M 8 ${y} C 12 ${y} 12 ${z} 16 ${z}`, "stroke-width": 0.04 + 0.5 * mass / largest, "stroke-opacity": 1 - 0.75 * distance / farthest,
    });
    const title = svg("title");
    title.textContent = `${one.hypothesis[i]} → ${one.reference[j]}: mass ${mass.toFixed(3)}, distance ${distance.toFixed(3)}`;
    line.append(title);
    picture.append(line);
  }
  const label = (words, x, anchor) => words.forEach((word, position) => {
    const node = svg("text", { x, y: at(position, words.length) + 0.22, "text-anchor": anchor, "font-size": 0.68 });
    node.textContent = word.length > 18 ? `${word.slice(0, 17)}…` : word;
    picture.append(node);
  });
  label(one.hypothesis, 7.7, "end");
  label(one.reference, 16.3, "start");
  const body = flows.slice(0, MOST_FLOWS).map(({ i, j, mass, distance }) => element("tr", {},
    element("td", {}, one.hypothesis[i]), element("td", {}, one.reference[j]),
    ...[mass, distance, mass * distance].map((value) => element("td", { class: "number" }, value.toFixed(4)))));
  const head = ["from", "to", "mass", "distance", "cost"].map((text, index) => element("th", index > 1 ? { class: "number" } : {}, text));
  const caption = flows.length > MOST_FLOWS ? [element("caption", {}, `The ${MOST_FLOWS} largest of ${flows.length} costs`)] : [];
  return [...nodes, element("div", { class: "columns" }, picture,
    element("div", { class: "scroll" }, element("table", { class: "flows" }, ...caption, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body))))];
}
