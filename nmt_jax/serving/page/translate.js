// The view Translate: translation while typing, alternatives of a word, candidates, alignment, attention.

import { drawAttention } from "/page/attention.js";
import { ask, debounced, element, labelled, say, words } from "/page/page.js";

const MOST_LINES = 20;
const ALTERNATIVES = 8;
const LONG = 500; // characters of a line, beyond which its words are not linked by attention

export async function show(view, { models }) {
  if (!models.length) {
    view.replaceChildren(element("p", {}, "The server has no translator; start it with --workdir=FOLDER."));
    return;
  }
  const address = new URLSearchParams(location.search);
  const chosen = address.getAll("model");
  const source = element("textarea", { id: "source", rows: 3, maxlength: 10000, lang: models[0].source, spellcheck: "false" });
  source.value = address.get("text") ?? "";
  const beam = number("beam_size", 1, 64, address.get("beam_size") ?? models[0].beam_size);
  const count = number("n_best", 1, 20, address.get("n_best") ?? 5);
  const temperature = number("temperature", 0, 10, address.get("temperature") ?? 1, 0.1);
  const sampling = element("input", { type: "checkbox", id: "sampling", checked: address.has("temperature") });
  const boxes = models.map((model) => element("input", {
    type: "checkbox", value: model.name, checked: chosen.length ? chosen.includes(model.name) : model === models[0],
  }));
  const output = element("div", { id: "translations" });
  const wishes = new Wishes(address, models, nonempty(source.value));

  const options = () => sampling.checked
    ? { num_samples: Number(count.value), temperature: Number(temperature.value) }
    : { n_best: Number(count.value), beam_size: Math.max(Number(beam.value), Number(count.value)) };
  let running = new AbortController();

  async function translate() {
    running.abort();
    running = new AbortController();
    temperature.disabled = !sampling.checked;
    beam.disabled = sampling.checked;
    const selected = models.filter((_, index) => boxes[index].checked);
    const lines = nonempty(source.value);
    const changed = () => remember(source.value, selected, models, sampling.checked, { beam, count, temperature },
      wishes.written(selected, models, lines));
    changed();
    if (!lines.length || !selected.length) {
      output.replaceChildren();
      say(selected.length ? "" : "Choose a model.");
      return;
    }
    const { signal } = running;
    say("Translating …");
    const began = performance.now();
    try {
      const panels = await Promise.all(selected.map(async (model) => {
        const wished = lines.map((line) => wishes.of(model, line));
        const { results } = await ask("/api/translate", requestFor(model, lines, wished, options()), signal);
        const heading = element("h2", {}, model.name);
        const blocks = results.map((found, index) => new Sentence(model, lines[index], found, wished[index], options, changed).node);
        return element("section", { class: "panel", "aria-label": model.name }, heading, ...blocks);
      }));
      output.replaceChildren(element("div", { class: "columns" }, ...panels));
      say(`${Math.round(performance.now() - began)} ms`);
    } catch (error) {
      if (error.name !== "AbortError") say(error.message, true);
    }
  }

  const soon = debounced(translate);
  for (const control of [source, beam, count, temperature]) control.addEventListener("input", soon);
  for (const control of [sampling, ...boxes]) control.addEventListener("change", translate);
  view.replaceChildren(
    element("label", { class: "wide" }, element("span", {}, `Text (${models[0].source}), one sentence per line`), source),
    element("div", { class: "options" },
      ...models.length > 1 ? boxes.map((box, index) => inline(box, models[index].name)) : [],
      labelled("Candidates", count), labelled("Beam size", beam), inline(sampling, "Sample"),
      labelled("Temperature", temperature)),
    output);
  source.focus();
  await translate();
}

function number(id, min, max, value, step = 1) {
  return element("input", { type: "number", id, min, max, step, value });
}

function inline(box, text) {
  return element("label", { class: "inline" }, box, text);
}

function nonempty(text) {
  return text.split("\n").filter((line) => line.trim()).slice(0, MOST_LINES);
}

function requestFor(model, lines, wished, options) {
  const attention = model.attention && lines.every((line) => line.length <= LONG);
  const body = { model: model.name, lines, ...options, attention };
  if (wished.some((wish) => wish.prefix)) body.prefixes = wished.map((wish) => wish.prefix);
  if (wished.some((wish) => wish.phrases)) body.constraints = wished.map((wish) => wish.phrases.split(/\s*;\s*/).join("\t"));
  return body;
}

// What a person asks of the translation of a line by a model: how it begins, and phrases (separated by ;) that it has.
// In the address: MODEL.LINE.TEXT, with the numbers of both.
class Wishes {
  constructor(address, models, lines) {
    this.known = new Map();
    for (const field of ["prefix", "phrases"]) {
      for (const value of address.getAll(field)) {
        const [, model, line, text] = value.match(/^(\d+)\.(\d+)\.(.*)$/) ?? [];
        if (models[model] && lines[line]) this.of(models[model], lines[line])[field] = text;
      }
    }
  }

  of(model, line) {
    const key = JSON.stringify([model.name, line]);
    if (!this.known.has(key)) this.known.set(key, { prefix: "", phrases: "" });
    return this.known.get(key);
  }

  written(selected, models, lines) {
    return selected.flatMap((model) => lines.flatMap((line, index) => ["prefix", "phrases"].flatMap((field) => {
      const text = this.of(model, line)[field];
      return text ? [[field, `${models.indexOf(model)}.${index}.${text}`]] : [];
    })));
  }
}

// Puts the state into the address, so that it can be shared and reloaded.
function remember(text, selected, models, sampled, { beam, count, temperature }, wished) {
  const address = new URLSearchParams();
  if (text) address.set("text", text);
  if (selected.length !== 1 || selected[0] !== models[0]) selected.forEach((model) => address.append("model", model.name));
  if (count.value !== "5") address.set("n_best", count.value);
  if (sampled) address.set("temperature", temperature.value);
  else if (beam.value !== String(models[0].beam_size)) address.set("beam_size", beam.value);
  wished.forEach(([field, value]) => address.append(field, value));
  history.replaceState(null, "", `/translate${address.size ? `?${address}` : ""}`);
}

// One source line with its translations by one model.
class Sentence {
  constructor(model, line, found, wish, options, changed) {
    Object.assign(this, { model, line, found, wish, options, changed });
    this.node = element("div", { class: "block" });
    this.draw();
  }

  draw() {
    const best = this.found[0];
    const target = best.words ?? words(best.text);
    const forced = words(this.wish.prefix).length;
    this.targets = target.map((word, index) => element("button", {
      class: index < forced ? "word forced" : "word", title: "Show alternatives", "data-index": index,
      onclick: () => this.alternatives(index),
    }, word));
    this.sources = (best.source_words ?? words(this.line)).map((word) => element("span", { class: "word", tabindex: 0 }, word));
    this.choices = element("div", { class: "alternatives" });
    const reset = element("button", { onclick: () => this.continueFrom("") }, "Start again");
    this.node.replaceChildren(
      element("p", { class: "sentence source", lang: this.model.source }, ...spaced(this.sources)),
      element("p", { class: "sentence target", lang: this.model.target }, ...spaced(this.targets), ...forced ? [reset] : []),
      this.choices,
      ...this.found.length > 1 ? [candidates(this.found), tree(this.found)] : [],
      this.constraints(),
      ...this.model.attention ? [this.attention()] : []);
    if (best.attention) this.link(best.attention);
  }

  // Shows by colour what a word attended to, or which words attended to it.
  link(weights) {
    const on = (nodes, weight) => nodes.forEach((node, index) => {
      node.classList.add("linked");
      node.style.setProperty("--weight", Math.round(weight(index) * 60) / 100);
    });
    const off = () => [...this.sources, ...this.targets].forEach((node) => node.classList.remove("linked"));
    const listen = (node, show) => {
      for (const name of ["pointerenter", "focus"]) node.addEventListener(name, () => { off(); show(); });
      for (const name of ["pointerleave", "blur"]) node.addEventListener(name, off);
    };
    this.targets.forEach((node, row) => listen(node, () => on(this.sources, (column) => weights[row]?.[column] ?? 0)));
    this.sources.forEach((node, column) => listen(node, () => on(this.targets, (row) => weights[row]?.[column] ?? 0)));
  }

  // Lists other words at a position, after the words before it: a diverse beam search, in which each group of one
  // hypothesis avoids the pieces of the groups before it.
  async alternatives(index) {
    const target = this.targets.map((node) => node.textContent);
    const before = target.slice(0, index).join(" ");
    this.choices.replaceChildren("…");
    try {
      const search = { n_best: ALTERNATIVES, beam_size: ALTERNATIVES, num_groups: ALTERNATIVES, diversity: 20 };
      const body = { model: this.model.name, lines: [this.line], prefixes: [before], ...search };
      const { results } = await ask("/api/translate", body);
      const found = new Map();
      for (const one of results[0]) {
        const word = words(one.text)[index];
        if (word && word !== target[index] && !found.has(word)) found.set(word, one);
      }
      this.choices.replaceChildren(...found.size
        ? [...found].map(([word, one]) => element("button", {
          title: one.text, onclick: () => this.continueFrom(`${before} ${word}`.trim()),
        }, word))
        : [element("span", { class: "quiet" }, "No other word was found.")]);
      this.choices.querySelector("button")?.focus();
    } catch (error) {
      this.choices.replaceChildren();
      say(error.message, true);
    }
  }

  continueFrom(prefix) {
    return this.again({ prefix });
  }

  // Translates the line again with another wish.
  async again(change) {
    const wish = { ...this.wish, ...change };
    try {
      const { results } = await ask("/api/translate", requestFor(this.model, [this.line], [wish], this.options()));
      Object.assign(this.wish, wish);
      this.found = results[0];
      this.changed();
      this.draw();
      say("");
    } catch (error) {
      say(error.message, true);
    }
  }

  constraints() {
    const input = element("input", { value: this.wish.phrases, "aria-label": "Phrases separated by ;" });
    input.addEventListener("change", async () => {
      await this.again({ phrases: input.value.trim() });
      this.node.querySelector("input").focus();
    });
    return element("details", { open: Boolean(this.wish.phrases) },
      element("summary", {}, "Phrases that the translation must contain"), labelled("Separated by ;", input));
  }

  attention() {
    const place = element("div");
    const details = element("details", { class: "attention" }, element("summary", {}, "Attention of all layers and heads"), place);
    details.addEventListener("toggle", async () => {
      if (!details.open || place.childElementCount) return;
      try {
        const body = { model: this.model.name, line: this.line, translation: this.found[0].text };
        drawAttention(place, await ask("/api/attention", body));
      } catch (error) {
        say(error.message, true);
      }
    });
    return details;
  }
}

function spaced(nodes) {
  return nodes.flatMap((node) => [node, " "]);
}

function candidates(found) {
  const items = found.map((one) => element("li", {}, one.text, " ", element("span", { class: "quiet" }, one.score.toFixed(2))));
  return element("details", { open: true }, element("summary", {}, "Candidates"), element("ol", { class: "candidates" }, ...items));
}

// The candidates as a tree: what they begin with in common is written once.
function tree(found) {
  const branch = (rows) => {
    const next = new Map();
    for (const row of rows) if (row.length) next.set(row[0], [...next.get(row[0]) ?? [], row.slice(1)]);
    const items = [...next].map(([word, rest]) => {
      const text = [word];
      let rows = rest;
      while (rows.every((row) => row.length && row[0] === rows[0][0])) {
        text.push(rows[0][0]);
        rows = rows.map((row) => row.slice(1));
      }
      const below = branch(rows);
      return element("li", {}, text.join(" "), ...below ? [below] : []);
    });
    return items.length ? element("ul", {}, ...items) : null;
  };
  const whole = branch(found.map((one) => words(one.text)));
  return element("details", { class: "tree" }, element("summary", {}, "Candidates as a tree"), ...whole ? [whole] : []);
}
