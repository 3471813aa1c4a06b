// Metrics of n-grams: a table of all orders, and the n-grams of each; one that is hovered is marked in both texts.

import { mark, onEnter, sentences, unmark } from "/page/linked.js";
import { element } from "/page/page.js";

const SHOWN = 150; // n-grams of one order at once
const COLUMNS = { precision: "precision %", recall: "recall %", f: "F %", information: "information", similarity: "similarity" };

export function ngrams(one) {
  const inCharacters = one.unit === "character";
  const units = [[], []]; // the node of each character or word of both texts
  const spans = [[], []]; // [node, first, end] of each word
  const { nodes, sides } = sentences(one);
  sides.forEach((words, side) => words.forEach((node) => {
    const first = units[side].length;
    if (inCharacters) {
      const characters = Array.from(node.textContent).map((text) => element("span", {}, text));
      node.replaceChildren(...characters);
      units[side].push(...characters);
    } else {
      units[side].push(node);
    }
    spans[side].push([node, first, units[side].length]);
  }));
  const off = () => unmark([units[0], units[1], sides[0], sides[1]]);
  const markPlaces = (ngram) => ["hypothesis", "reference"].forEach((name, side) => ngram[name].forEach(
    ([first, end]) => mark(units[side].slice(first, end))));

  for (const ngram of inCharacters ? [] : one.orders[0].ngrams) {
    if (ngram.matched) ["hypothesis", "reference"].forEach((name, side) => ngram[name].slice(0, ngram.matched).forEach(
      ([first, end]) => units[side].slice(first, end).forEach((node) => node.classList.add("matched"))));
  }

  // A word marks what the longest n-grams in it that match stand for in the other text.
  spans.forEach((words, side) => words.forEach(([node, first, end]) => onEnter(node, () => {
    const [mine, other] = side ? ["reference", "hypothesis"] : ["hypothesis", "reference"];
    mark([node], 0.4);
    for (const order of [...one.orders].reverse()) {
      const found = order.ngrams.filter((ngram) => ngram.matched && ngram[mine].some(([a, b]) => first <= a && b <= end));
      if (!found.length) continue;
      for (const ngram of found) ngram[other].forEach(([a, b]) => mark(units[1 - side].slice(a, b)));
      return;
    }
  }, off)));

  const columns = Object.keys(COLUMNS).filter((name) => one.orders.some((order) => name in order));
  const head = ["order", "in hypothesis", "in reference", "matched", ...columns.map((name) => COLUMNS[name])];
  const body = one.orders.map((order) => element("tr", {},
    element("td", {}, name(order)),
    ...["hypothesis", "reference", "matches"].map((key) => element("td", { class: "number" }, String(order[key]))),
    ...columns.map((key) => element("td", { class: "number" }, order[key] === undefined ? "–" : order[key].toFixed(["information", "similarity"].includes(key) ? 4 : 2)))));
  const table = element("div", { class: "scroll" }, element("table", { class: "orders" },
    element("thead", {}, element("tr", {}, ...head.map((text, index) => element("th", index ? { class: "number" } : {}, text)))),
    element("tbody", {}, ...body)));
  const lists = one.orders.filter((order) => order.ngrams.length).map((order, index) => details(order, index === 0, markPlaces, off));
  return [...nodes, table, element("h3", {}, "N-grams"), ...lists];
}

function name(order) {
  return `${order.order} ${order.unit}${order.order > 1 ? "s" : ""}`;
}

// The n-grams of an order, drawn when they are first shown.
function details(order, open, markPlaces, off) {
  const list = element("div", { class: "chips" });
  const draw = () => {
    if (list.childElementCount) return;
    list.append(...order.ngrams.slice(0, SHOWN).map((ngram) => {
      const chip = element("button", { class: ngram.matched ? "chip matched" : "chip" }, ngram.text.replace(/ /g, "\u00a0"), " ",
        element("span", { class: "quiet" }, `${ngram.hypothesis.length}:${ngram.reference.length}`));
      chip.title = `${ngram.hypothesis.length} in the hypothesis, ${ngram.reference.length} in the reference, ${ngram.matched} matched`;
      onEnter(chip, () => markPlaces(ngram), off);
      return chip;
    }));
    if (order.ngrams.length > SHOWN) list.append(element("span", { class: "quiet" }, `and ${order.ngrams.length - SHOWN} more`));
  };
  const node = element("details", { open }, element("summary", {}, `${name(order)}: ${order.matches} matched`), list);
  node.addEventListener("toggle", () => node.open && draw());
  if (open) draw();
  return node;
}
