// Attention weights as matrices of all layers and heads, and as curves between words.

import { element, labelled } from "/page/page.js";

// The attention of a pair of sentences, by kind: one layer and head as curves, and all as matrices.
export function drawAttention(place, answer) {
  const kinds = ["cross", "encoder", "decoder"].filter((kind) => answer[kind]);
  const choose = element("select", { name: "kind" }, ...kinds.map((kind) => element("option", { value: kind }, kind)));
  const pictures = element("div");
  const draw = () => {
    const kind = choose.value;
    const rows = kind === "encoder" ? answer.source_pieces : answer.target_pieces;
    const columns = kind === "decoder" ? answer.target_pieces : answer.source_pieces;
    const choice = chooseHead(answer[kind]);
    const curves = element("div");
    const drawCurves = () => curves.replaceChildren(arcs(choice.matrix(), rows, columns));
    choice.controls.forEach((control) => control.addEventListener("change", drawCurves));
    drawCurves();
    pictures.replaceChildren(element("div", { class: "options" }, ...choice.controls), curves, drawHeads(answer[kind], rows, columns));
  };
  choose.addEventListener("change", draw);
  place.replaceChildren(element("div", { class: "options" }, labelled("Attention", choose)), pictures);
  draw();
}

// Returns controls that choose a layer and a head of weights [L][H][rows][columns], or the mean, the values chosen, and
// the matrix that they stand for.
export function chooseHead(weights, chosen = {}) {
  const options = (name, count) => element("select", { name },
    element("option", { value: "mean" }, "mean"),
    ...Array.from({ length: count }, (_, index) => element("option", { value: index + 1, selected: chosen[name] === String(index + 1) }, String(index + 1))));
  const [layer, head] = [options("layer", weights.length), options("head", weights[0].length)];
  const matrix = () => {
    const layers = layer.value === "mean" ? weights : [weights[layer.value - 1]];
    return mean(layers.flatMap((one) => head.value === "mean" ? one : [one[head.value - 1]]));
  };
  return { controls: [labelled("Layer", layer), labelled("Head", head)], values: () => ({ layer: layer.value, head: head.value }), matrix };
}

// The mean of matrices of one shape.
function mean(matrices) {
  return matrices[0].map((row, r) => row.map((_, c) => matrices.reduce((sum, one) => sum + one[r][c], 0) / matrices.length));
}

// Returns a figure per layer and head of weights [L][H][rows][columns]; a click enlarges one and shows its words.
export function drawHeads(layers, rows, columns) {
  const place = element("div", { class: "heads" });
  const figures = layers.flatMap((layer, l) => layer.map((weights, h) => ({ weights, name: `layer ${l + 1}, head ${h + 1}` })));
  const draw = (only) => {
    place.classList.toggle("one", only !== undefined);
    place.replaceChildren(...figures.filter((_, index) => only === undefined || index === only).map(({ weights, name }, index) =>
      element("figure", {},
        matrix(weights, rows, columns, only !== undefined, name),
        element("figcaption", {}, element("button", { onclick: () => draw(only === undefined ? index : undefined) },
          only === undefined ? name : `${name}: back to all`)))));
  };
  draw();
  return place;
}

export function matrix(weights, rows, columns, withWords, name) {
  const space = withWords ? 6 : 0;
  const picture = svg("svg", { viewBox: `0 0 ${columns.length + space} ${rows.length + space}`, role: "img", "aria-label": name });
  weights.forEach((row, y) => row.forEach((weight, x) => {
    const cell = svg("rect", { x: x + space, y: y + space, width: 1, height: 1, "fill-opacity": weight });
    const title = svg("title");
    title.textContent = `${rows[y]} → ${columns[x]}: ${weight.toFixed(2)}`;
    cell.append(title);
    picture.append(cell);
  }));
  if (withWords) {
    const write = (text, attributes) => {
      const node = svg("text", { "font-size": 0.7, ...attributes });
      node.textContent = text;
      picture.append(node);
    };
    rows.forEach((text, y) => write(text, { x: space - 0.3, y: y + space + 0.75, "text-anchor": "end" }));
    columns.forEach((text, x) => write(text, { transform: `translate(${x + space + 0.7} ${space - 0.3}) rotate(-60)` }));
  }
  return picture;
}

const [ARCS_WIDTH, ARCS_LINE, ARCS_WORDS] = [340, 22, 115]; // of the picture, of a row, and of a column of words
const LEAST = 0.01; // weight of a curve

// Returns rows and columns as two columns of words, with a curve for each of the weights [rows][columns]: from a row, on
// the left, to what it attends to, on the right. The pointer or the focus on a word shows its curves alone.
export function arcs(weights, rows, columns) {
  const picture = svg("svg", {
    class: "arcs", viewBox: `0 0 ${ARCS_WIDTH} ${ARCS_LINE * Math.max(rows.length, columns.length)}`, role: "group", "aria-label": "Attention as curves",
  });
  const [left, right, middle] = [ARCS_WORDS, ARCS_WIDTH - ARCS_WORDS, ARCS_WIDTH / 2];
  const curves = weights.flatMap((row, r) => row.flatMap((weight, c) => {
    if (weight < LEAST) return [];
    const [from, to] = [(r + 0.5) * ARCS_LINE, (c + 0.5) * ARCS_LINE];
    return [{ r, c, weight, node: svg("path", { d: `M${left} ${from}C${middle} ${from} ${middle} ${to} ${right} ${to}` }) }];
  }));
  const word = (text, index, x, anchor) => {
    const node = svg("g", { tabindex: 0 });
    const label = svg("text", { x: anchor === "end" ? x - 6 : x + 6, y: (index + 0.5) * ARCS_LINE + 5, "text-anchor": anchor });
    label.textContent = text.length > 13 ? `${text.slice(0, 12)}…` : text;
    const ground = svg("rect", { x: anchor === "end" ? 0 : x, y: index * ARCS_LINE + 1, width: ARCS_WORDS, height: ARCS_LINE - 2, rx: 3 });
    node.append(ground, label);
    return { node, ground };
  };
  const ends = [rows.map((text, r) => word(text, r, left, "end")), columns.map((text, c) => word(text, c, right, "start"))];
  // Shows the curves of a word, side 0 for a row and 1 for a column, or of all.
  const show = (side, index) => {
    ends.flat().forEach(({ ground }) => ground.setAttribute("fill-opacity", 0));
    for (const { r, c, weight, node } of curves) {
      const shown = side === undefined || [r, c][side] === index;
      node.setAttribute("stroke-opacity", shown ? weight : 0);
      if (shown && side !== undefined) ends[1 - side][[c, r][side]].ground.setAttribute("fill-opacity", weight * 0.6);
    }
  };
  ends.forEach((side, number) => side.forEach(({ node }, index) => {
    for (const name of ["pointerenter", "focus"]) node.addEventListener(name, () => show(number, index));
    for (const name of ["pointerleave", "blur"]) node.addEventListener(name, () => show());
  }));
  picture.append(...curves.map(({ node }) => node), ...ends.flat().map(({ node }) => node));
  show();
  return picture;
}

export function svg(tag, attributes = {}) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}
