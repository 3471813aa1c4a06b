// The view Language: continuations by a language model, masks that BERT fills, and attention within a text.

import { arcs, chooseHead, drawHeads } from "/page/attention.js";
import { ask, debounced, element, labelled, say, words } from "/page/page.js";

const NUMBERS = { // id: label, smallest, largest, default, step
  length: ["Length", 1, 500, 40, 1],
  temperature: ["Temperature", 0, 10, 0.8, 0.1],
  top_k: ["Top k (0: all)", 0, 100000, 0, 1],
  top_p: ["Top p", 0.01, 1, 1, 0.01],
  seed: ["Seed", 0, 2147483647, 0, 1],
};
const NONE = "The server has no language model and no encoder; start it with --workdir=FOLDER of a language model or a "
  + "pretrained BERT, or with --encoder=PLACE.";
const LEGEND = [0.01, 0.1, 0.5, 1];
const LOOKED_AT = 4; // pieces that are named

export async function show(view, { text_models: models }) {
  if (!models.length) {
    view.replaceChildren(element("p", {}, NONE));
    return;
  }
  const address = new URLSearchParams(location.search);
  const choose = element("select", { id: "model" }, ...models.map((one) =>
    element("option", { selected: one.name === address.get("model") }, one.name)));
  const text = element("textarea", { id: "text", rows: 2, maxlength: 10000, spellcheck: "false" });
  text.value = address.get("text") ?? "";
  const numbers = Object.fromEntries(Object.entries(NUMBERS).map(([id, [, min, max, value, step]]) =>
    [id, element("input", { type: "number", id, min, max, step, value: address.get(id) ?? value })]));
  const sampling = element("div", { class: "options" }, ...Object.entries(numbers).map(([id, node]) => labelled(NUMBERS[id][0], node)));
  const output = element("div", { id: "language" });
  const looking = { layer: address.get("layer") ?? "mean", head: address.get("head") ?? "mean", special: !address.has("no_special") };
  const hidden = new Map(); // words that were masked, by their number
  const chosen = () => models[choose.selectedIndex];
  const line = () => words(text.value).join(" ");
  let running = new AbortController();

  // Puts the state into the address, so that it can be shared and reloaded.
  function remember() {
    const state = new URLSearchParams();
    if (line()) state.set("text", line());
    if (choose.selectedIndex) state.set("model", chosen().name);
    if (chosen().can.includes("generate")) {
      for (const [id, node] of Object.entries(numbers)) if (node.value !== String(NUMBERS[id][3])) state.set(id, node.value);
    }
    if (chosen().can.includes("attention")) {
      for (const name of ["layer", "head"]) if (looking[name] !== "mean") state.set(name, looking[name]);
      if (!looking.special) state.set("no_special", "");
    }
    history.replaceState(null, "", `/language${state.size ? `?${state}` : ""}`);
  }

  async function update(focus) {
    running.abort();
    running = new AbortController();
    const { signal } = running;
    const [model, given] = [chosen(), line()];
    const can = (ability) => model.can.includes(ability);
    sampling.hidden = !can("generate");
    remember();
    const parts = [];
    if (can("generate")) {
      const settings = Object.fromEntries(Object.entries(numbers).map(([id, node]) => [id, Number(node.value)]));
      parts.push(ask("/api/generate", { model: model.name, text: given, ...settings }, signal)
        .then((answer) => drawContinuation(answer, (longer) => change(longer, ".continuation .piece:not(.given)"))));
    }
    if (can("fill") && given) parts.push(drawMasks(model, given, hidden, signal, change));
    if (can("attention") && given) {
      parts.push(ask("/api/text_attention", { model: model.name, text: given }, signal)
        .then((answer) => drawWithin(answer, looking, remember)));
    }
    say(parts.length ? "Computing …" : "Type a text.");
    const began = performance.now();
    const drawn = await Promise.allSettled(parts);
    if (signal.aborted) return;
    output.replaceChildren(...drawn.filter((one) => one.status === "fulfilled").map((one) => one.value));
    const failed = drawn.find((one) => one.status === "rejected");
    if (failed) say(failed.reason.message, true);
    else if (parts.length) say(`${Math.round(performance.now() - began)} ms`);
    if (focus) output.querySelector(focus)?.focus();
  }

  function change(given, focus) {
    text.value = given;
    return update(focus);
  }

  const soon = debounced(() => update());
  text.addEventListener("input", () => { hidden.clear(); soon(); });
  for (const node of Object.values(numbers)) node.addEventListener("input", soon);
  choose.addEventListener("change", () => { hidden.clear(); update(); });
  view.replaceChildren(
    element("div", { class: "options" }, labelled("Model", choose)),
    element("label", { class: "wide" }, element("span", {}, "Text"), text),
    sampling, output);
  text.focus();
  await update();
}

function percent(probability) {
  const value = 100 * probability;
  return `${value.toFixed(value < 10 ? 1 : 0)} %`;
}

// Candidates with their probabilities as bars: pairs of a label and a probability. `choose` gets the number of the one
// that is clicked; those that `can` refuses cannot be.
function bars(rows, choose, can = () => true) {
  return element("ol", { class: "bars" }, ...rows.map(([label, probability], index) => {
    const button = element("button", { onclick: () => choose(index), disabled: !can(index) },
      element("span", {}, label), element("span", { class: "quiet" }, percent(probability)));
    button.style.setProperty("--share", probability);
    return element("li", {}, button);
  }));
}

// The text of SentencePiece's pieces: ▁ is a space, <0xE4> a byte.
function textOf(pieces) {
  const bytes = pieces.flatMap((piece) => {
    const byte = /^<0x([0-9A-F]{2})>$/.exec(piece);
    return byte ? [parseInt(byte[1], 16)] : [...new TextEncoder().encode(piece.replaceAll("▁", " "))];
  });
  return new TextDecoder().decode(new Uint8Array(bytes)).trim();
}

function coloured(node, probability) {
  node.style.setProperty("--weight", Math.round(Math.sqrt(probability) * 60) / 100); // so that small ones differ, too
  return node;
}

// The continuation, coloured by probability. A piece shows what else was probable at its place; a click on it keeps the
// list, and a click in the list continues from there.
function drawContinuation({ pieces, given }, continueFrom) {
  const list = element("div", { class: "place" }, element("p", { class: "quiet" }, "Point to a piece to see what else was probable; click to keep the list."));
  let kept;
  const showPlace = (index, keep) => {
    if (kept !== undefined && !keep) return;
    kept = keep && kept !== index ? index : undefined;
    nodes.forEach((node, number) => node.classList.toggle("chosen", number === kept));
    const { piece, probability, alternatives } = pieces[index];
    const before = pieces.slice(0, index).map((one) => one.piece);
    list.replaceChildren(
      element("h3", {}, `“${shownPiece(piece)}” has ${percent(probability)} after “${textOf(before).split(" ").slice(-3).join(" ")}”`),
      bars(alternatives.map((one) => [shownPiece(one.piece), one.probability]),
        (number) => continueFrom(textOf([...before, alternatives[number].piece])),
        (number) => alternatives[number].piece !== "</s>"));
    if (kept !== undefined) list.querySelector("button:enabled")?.focus();
  };
  const nodes = pieces.map(({ piece, probability }, index) => {
    const node = element("button", {
      class: index < given ? "piece given" : "piece", "aria-label": `${shownPiece(piece)}, ${percent(probability)}`,
      onclick: () => showPlace(index, true), onpointerenter: () => showPlace(index, false), onfocus: () => showPlace(index, false),
    }, shownPiece(piece));
    return coloured(node, probability);
  });
  const legend = LEGEND.map((probability) => coloured(element("span", { class: "piece" }, percent(probability)), probability));
  return element("section", { class: "panel", "aria-label": "Continuation" },
    element("h2", {}, "Continuation"),
    element("p", { class: "continuation" }, ...nodes.flatMap((node, index) => pieces[index].piece.startsWith("▁") || pieces[index].piece === "</s>" ? [" ", node] : [node])),
    element("p", { class: "quiet legend" }, "Probability of a piece after those before it: ", ...legend),
    list);
}

function shownPiece(piece) {
  return piece.replace(/^▁(?=.)/, "");
}

// The words of a text, each of which can be masked, and the candidates for every mask.
async function drawMasks(model, text, hidden, signal, change) {
  const { mask } = model;
  const all = words(text);
  const toggle = (index) => {
    const changed = [...all];
    if (!all[index].includes(mask)) {
      changed[index] = all[index].replace(/[\p{L}\p{N}](.*[\p{L}\p{N}])?/u, mask);
      if (changed[index] === all[index]) changed[index] = mask;
      hidden.set(index, all[index]);
    } else if (hidden.has(index)) {
      changed[index] = hidden.get(index);
    } else {
      say("Choose one of the candidates for this mask.");
      return;
    }
    change(changed.join(" "), `.masks .word:nth-of-type(${index + 1})`);
  };
  const buttons = all.map((word, index) => element("button", {
    class: "word", "aria-pressed": String(word.includes(mask)), onclick: () => toggle(index),
  }, word));
  const { masks } = text.includes(mask) ? await ask("/api/fill", { model: model.name, text }, signal) : { masks: [] };
  const found = masks.map((candidates, number) => element("section", { "aria-label": `Mask ${number + 1}` },
    element("h3", {}, masks.length > 1 ? `Mask ${number + 1}` : "Candidates"),
    bars(candidates.map(({ piece, probability }) => [shownPiece(piece), probability]),
      (index) => {
        if (words(candidates[index].text).length !== all.length) hidden.clear(); // the numbers of words have changed
        change(candidates[index].text, ".masks .word");
      })));
  return element("section", { class: "panel masks", "aria-label": "Masks" },
    element("h2", {}, "Masks"),
    element("p", { class: "quiet" }, "A click on a word masks it; a click on a candidate puts it in."),
    element("p", { class: "sentence target" }, ...buttons.flatMap((node) => [node, " "])),
    ...found);
}

// Pieces as labels: those that continue a word begin with a dot.
function labels(pieces) {
  const blanks = pieces.some((piece) => piece.startsWith("▁"));
  return pieces.map((piece, index) => {
    if (piece.startsWith("▁")) return piece.slice(1) || "▁";
    if (!blanks) return piece.startsWith("##") && piece.length > 2 ? `·${piece.slice(2)}` : piece;
    return index === 0 || piece.startsWith("<") ? piece : `·${piece}`;
  });
}

function isSpecial(piece) {
  return /^(\[(CLS|SEP|PAD)\]|<\/?s>|<pad>)$/.test(piece);
}

// What each piece of a text looks at, in one layer and head or on average.
function drawWithin({ pieces, weights }, looking, remember) {
  const choice = chooseHead(weights, looking);
  const special = element("input", { type: "checkbox", id: "special", checked: looking.special });
  const place = element("div", { class: "within" });
  const heads = element("div");
  const all = element("details", {}, element("summary", {}, "All layers and heads"), heads);
  const draw = () => {
    Object.assign(looking, choice.values(), { special: special.checked });
    remember();
    const kept = pieces.map((_, index) => index).filter((index) => special.checked || !isSpecial(pieces[index]));
    const part = (matrix) => kept.map((row) => kept.map((column) => matrix[row][column]));
    const names = kept.map((index) => labels(pieces)[index]);
    const matrix = part(choice.matrix());
    place.replaceChildren(drawLooks(matrix, names), arcs(matrix, names, names));
    const drawAll = () => all.open && heads.replaceChildren(drawHeads(weights.map((one) => one.map(part)), names, names));
    all.ontoggle = drawAll;
    drawAll();
  };
  for (const control of [...choice.controls, special]) control.addEventListener("change", draw);
  draw();
  return element("section", { class: "panel", "aria-label": "Attention" },
    element("h2", {}, "What each piece looks at"),
    element("div", { class: "options" }, ...choice.controls,
      element("label", { class: "inline" }, special, "Special pieces")),
    place, all);
}

// The pieces in a row; the pointer or the focus on one shows by colour what it looks at.
function drawLooks(matrix, names) {
  const told = element("p", { class: "quiet" }, "Point to a piece.");
  const nodes = names.map((name) => element("span", { class: "word", tabindex: 0 }, name));
  nodes.forEach((node, row) => {
    const show = () => {
      nodes.forEach((other, column) => {
        other.classList.add("linked");
        other.style.setProperty("--weight", Math.round(matrix[row][column] * 80) / 100);
      });
      const most = names.map((_, column) => column).sort((a, b) => matrix[row][b] - matrix[row][a]).slice(0, LOOKED_AT);
      told.textContent = `“${names[row]}” looks at ${most.map((column) => `${names[column]} ${percent(matrix[row][column])}`).join(", ")}`;
    };
    const clear = () => nodes.forEach((other) => other.classList.remove("linked"));
    for (const event of ["pointerenter", "focus"]) node.addEventListener(event, show);
    for (const event of ["pointerleave", "blur"]) node.addEventListener(event, clear);
  });
  return element("div", {}, element("p", { class: "sentence target looks" }, ...nodes.flatMap((node) => [node, " "])), told);
}
