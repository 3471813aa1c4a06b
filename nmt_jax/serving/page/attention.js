// Attention matrices of all layers and heads.

import { element, labelled } from "/page/page.js";

// Attention matrices, a figure per layer and head; a click enlarges one and shows its words.
export function drawAttention(place, answer) {
  const kinds = ["cross", "encoder", "decoder"].filter((kind) => answer[kind]);
  const choose = element("select", {}, ...kinds.map((kind) => element("option", { value: kind }, kind)));
  const heads = element("div", { class: "heads" });
  const draw = (only) => {
    const kind = choose.value;
    const rows = kind === "encoder" ? answer.source_pieces : answer.target_pieces;
    const columns = kind === "decoder" ? answer.target_pieces : answer.source_pieces;
    const figures = answer[kind].flatMap((layer, l) => layer.map((weights, h) => ({ weights, name: `layer ${l + 1}, head ${h + 1}` })));
    heads.classList.toggle("one", only !== undefined);
    heads.replaceChildren(...figures.filter((_, index) => only === undefined || index === only).map(({ weights, name }, index) =>
      element("figure", {},
        matrix(weights, rows, columns, only !== undefined, name),
        element("figcaption", {}, element("button", { onclick: () => draw(only === undefined ? index : undefined) },
          only === undefined ? name : `${name}: back to all`)))));
  };
  choose.addEventListener("change", () => draw());
  place.replaceChildren(element("div", { class: "options" }, labelled("Attention", choose)), heads);
  draw();
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

export function svg(tag, attributes = {}) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}
