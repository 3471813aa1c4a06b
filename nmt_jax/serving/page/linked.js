// Two texts as words, and marks on what belongs together in them.

import { element } from "/page/page.js";

// Both texts as words, which `linked` connects. A word can be focused, so that the keyboard reaches it.
export function sentences(one) {
  const sides = ["hypothesis", "reference"].map((side) => one[side].map((word) => element("span", { class: "word", tabindex: 0 }, word)));
  const lines = sides.map((nodes, index) => element("div", { class: "sentence" },
    element("h3", {}, ["Hypothesis", "Reference"][index]),
    element("p", { class: "text" }, ...nodes.length ? nodes.flatMap((node) => [node, " "]) : [element("span", { class: "quiet" }, "empty")])));
  return { nodes: lines, sides };
}

// Calls `enter` when the pointer or the focus comes to a node, and `leave` when it goes.
export function onEnter(node, enter, leave) {
  for (const name of ["pointerenter", "focus"]) node.addEventListener(name, () => { leave(); enter(); });
  for (const name of ["pointerleave", "blur"]) node.addEventListener(name, leave);
}

// Marks nodes with a weight from 0 to 1.
export function mark(nodes, weight = 1) {
  for (const node of nodes) {
    node.classList.add("linked");
    node.style.setProperty("--weight", Math.round(weight * 60) / 100);
  }
}

export function unmark(sides) {
  for (const node of sides.flat()) node.classList.remove("linked");
}

// Marks, for a word of either side, itself and the words of the other side by weight(i, j) of hypothesis and reference.
export function linked(sides, weight) {
  const off = () => unmark(sides);
  sides.forEach((nodes, side) => nodes.forEach((node, position) => onEnter(node, () => {
    mark([node]);
    sides[1 - side].forEach((other, place) => {
      const found = side ? weight(place, position) : weight(position, place);
      if (found) mark([other], found);
    });
  }, off)));
}
