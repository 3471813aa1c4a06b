// Metrics that align words: the matches of METEOR and ROUGE-L, the shifts and edits of TER.

import { linked, sentences } from "/page/linked.js";
import { element } from "/page/page.js";

export function alignmentOf(one) {
  const { nodes, sides } = sentences(one);
  const links = new Set(one.matches.flatMap((match) => match.hypothesis.flatMap((i) => match.reference.map((j) => `${i} ${j}`))));
  linked(sides, (i, j) => links.has(`${i} ${j}`) ? 1 : 0);
  for (const match of one.matches) {
    for (const [side, name] of ["hypothesis", "reference"].entries()) {
      for (const position of match[name]) {
        const node = sides[side][position];
        node.classList.add("matched", `chunk-${match.chunk % 6}`);
        node.title = `${match.module}, chunk ${match.chunk + 1}`;
      }
    }
  }
  const words = (side, positions) => positions.map((position) => one[side][position]).join(" ");
  const rows = one.matches.map((match) => element("tr", {},
    element("td", {}, words("hypothesis", match.hypothesis)), element("td", {}, words("reference", match.reference)),
    element("td", {}, match.module), element("td", { class: "number" }, String(match.chunk + 1))));
  const head = ["hypothesis", "reference", "match", "chunk"].map((text, index) => element("th", index === 3 ? { class: "number" } : {}, text));
  return [...nodes, ...rows.length ? [element("div", { class: "scroll" },
    element("table", { class: "alignment" }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)))] : []];
}

// The words of both texts one above the other, after the shifts; words of a shifted block are underlined.
export function edits(one) {
  const { nodes, sides } = sentences(one);
  const links = new Map(one.pairs.map(([place, j]) => [`${one.order[place]} ${j}`, 1]));
  linked(sides, (i, j) => links.get(`${i} ${j}`) ?? 0);
  const shifted = new Set();
  let order = one.hypothesis.map((_, position) => position);
  const steps = one.shifts.map(([first, middle, last]) => {
    const blocks = [order.slice(first, middle), order.slice(middle, last)];
    const moved = blocks[0].length <= blocks[1].length ? 0 : 1;
    blocks[moved].forEach((position) => shifted.add(position));
    order = [...order.slice(0, first), ...blocks[1], ...blocks[0], ...order.slice(last)];
    const text = (block) => block.map((position) => one.hypothesis[position]).join(" ");
    return element("li", {}, element("span", { class: "word matched" }, text(blocks[moved])), moved ? " moves before " : " moves behind ",
      element("span", { class: "word" }, text(blocks[1 - moved])));
  });
  for (const position of shifted) sides[0][position].classList.add("forced");
  const columns = [];
  const add = (kind, place, j) => columns.push(cell(kind, place === null ? "" : one.hypothesis[one.order[place]], j === null ? "" : one.reference[j]));
  let [place, j] = [0, 0];
  for (const [nextPlace, nextJ] of [...one.pairs, [one.order.length, one.reference.length]]) {
    for (; place < nextPlace; place += 1) add("deletion", place, null);
    for (; j < nextJ; j += 1) add("insertion", null, j);
    if (nextPlace < one.order.length) {
      add(one.hypothesis[one.order[place]] === one.reference[j] ? "match" : "substitution", place, j);
      place += 1;
      j += 1;
    }
  }
  return [...nodes,
    ...steps.length ? [element("h3", {}, "Shifts"), element("ol", { class: "shifts" }, ...steps)] : [],
    element("h3", {}, steps.length ? "Edits after the shifts" : "Edits"), element("div", { class: "edits" }, ...columns)];
}

const SIGNS = { match: "=", substitution: "substitute", insertion: "insert", deletion: "delete" };

function cell(kind, word, other) {
  return element("div", { class: `edit ${kind}` }, element("span", {}, word || "\u00a0"), element("span", { class: "quiet" }, SIGNS[kind]),
    element("span", {}, other || "\u00a0"));
}
