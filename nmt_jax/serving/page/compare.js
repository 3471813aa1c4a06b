// The view Compare: scores of systems with intervals and tests, differences by length and by word frequency, sentences
// that differ most.

import { ask, element, labelled, say, words } from "/page/page.js";

const LONGEST_ADDRESS = 200000; // characters; larger inputs are not put into the address
const BUCKETS = [10, 20, 30, Infinity]; // words of the reference, upper ends
const FREQUENCIES = [1, 4, 9, 99, Infinity]; // occurrences of a word in the references, upper ends
const SHOWN = 200; // sentences at once

export async function show(view, { metrics }) {
  const known = Object.fromEntries(metrics.map((metric) => [metric.name, metric]));
  const references = input("Reference", "");
  const systems = [input("System", "A"), input("System", "B")];
  const inputs = element("div", { class: "columns" }, references.node, ...systems.map((one) => one.node));
  const results = element("div", { id: "results" });
  const add = (name) => {
    const one = input("System", name ?? String.fromCharCode(65 + systems.length));
    systems.push(one);
    inputs.append(one.node);
    return one;
  };

  async function compare() {
    const used = systems.filter((one) => one.text.value.trim());
    const texts = Object.fromEntries(used.map((one) => [one.name.value, lines(one.text.value)]));
    const state = { references: lines(references.text.value), systems: texts };
    if (Object.keys(texts).length < used.length) return say("Two systems have the same name.", true);
    if (!used.length || !references.text.value.trim()) return say("Give references and at least one system.", true);
    const hash = `#${await packed(state)}`;
    history.replaceState(null, "", `/compare${location.search}${hash.length <= LONGEST_ADDRESS ? hash : ""}`);
    say("Scoring …");
    try {
      const rows = await ask("/api/score", { ...state, paired: used.length > 1 });
      draw(results, state, rows, known);
      say(hash.length <= LONGEST_ADDRESS ? "" : "The texts are too long for the address; download the result to share it.");
    } catch (error) {
      say(error.message, true);
    }
    return undefined;
  }

  view.replaceChildren(
    element("p", {}, "Paste texts, or drop files; line N of each system is a translation of line N of the reference."),
    inputs,
    element("div", { class: "options" },
      element("button", { class: "primary", id: "compare", onclick: compare }, "Compare"),
      element("button", { onclick: () => add().text.focus() }, "Add a system")),
    results);
  if (location.hash.length > 1) {
    try {
      const state = await unpacked(location.hash.slice(1));
      references.text.value = state.references.join("\n");
      Object.entries(state.systems).forEach(([name, text], index) => {
        const one = systems[index] ?? add(name);
        one.name.value = name;
        one.text.value = text.join("\n");
      });
    } catch {
      return say("The address is damaged.", true);
    }
    await compare();
  }
  return undefined;
}

// The texts as compressed base64, with characters that an address may have.
async function packed(state) {
  const stream = new Blob([JSON.stringify(state)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

function lines(text) {
  return text.replace(/\r/g, "").replace(/\n$/, "").split("\n");
}

// A text with a name; a file can be dropped on it or chosen.
function input(kind, value) {
  const text = element("textarea", { rows: 6, spellcheck: "false", "aria-label": `${kind} ${value}`.trim() });
  const name = element("input", { value, size: 12, "aria-label": "Name of the system" });
  const choose = element("input", { type: "file", "aria-label": `File of ${kind.toLowerCase()} ${value}`.trim() });
  const read = async (file) => {
    if (!file) return;
    text.value = await file.text();
    if (kind === "System") name.value = file.name;
  };
  choose.addEventListener("change", () => read(choose.files[0]));
  const node = element("section", { class: "panel" }, element("h2", {}, kind, " ", ...kind === "System" ? [name] : []), text, choose);
  node.addEventListener("dragover", (event) => { event.preventDefault(); node.classList.add("dropping"); });
  node.addEventListener("dragleave", () => node.classList.remove("dropping"));
  node.addEventListener("drop", (event) => {
    event.preventDefault();
    node.classList.remove("dropping");
    read(event.dataTransfer.files[0]);
  });
  return { node, text, name };
}

function draw(place, state, rows, known) {
  const names = [...new Set(rows.map((row) => row.metric))];
  const systems = Object.keys(state.systems);
  const segments = (metric, system) => rows.find((row) => row.metric === metric && row.system === system).segments;
  const address = new URLSearchParams(location.search);
  const initial = names.includes(address.get("metric")) ? address.get("metric") : names.includes("chrf") ? "chrf" : names[0];
  const choose = element("select", { id: "metric" }, ...names.map((name) => element("option", { selected: name === initial }, name)));
  const filter = element("input", { type: "search", id: "filter", value: address.get("filter") ?? "" });
  const byLength = element("div", { class: "scroll" });
  const sentences = element("div", { class: "scroll sentences" });
  const order = { column: address.get("sort") ?? "difference", down: address.get("order") !== "up" };

  const update = () => {
    const settings = { metric: choose.value, ...filter.value && { filter: filter.value }, sort: order.column, ...!order.down && { order: "up" } };
    history.replaceState(null, "", `/compare?${new URLSearchParams(settings)}${location.hash}`);
    const scores = systems.map((system) => segments(choose.value, system));
    byLength.replaceChildren(lengthTable(state, systems, scores, known[choose.value]));
    sentences.replaceChildren(sentenceTable(state, systems, scores, known[choose.value], filter.value, order, (column) => {
      order.down = order.column === column ? !order.down : true;
      order.column = column;
      update();
    }));
  };
  choose.addEventListener("change", update);
  filter.addEventListener("input", update);
  place.replaceChildren(
    element("h3", {}, "Scores"),
    element("div", { class: "scroll" }, scoreTable(rows, systems, known)),
    element("div", { class: "options" }, labelled("Metric of sentences", choose), labelled("Sentences that contain", filter),
      element("button", { onclick: () => download("comparison.tsv", "text/tab-separated-values", table(state, systems, rows, names)) }, "Download TSV"),
      element("button", { onclick: () => download("comparison.html", "text/html", page(place)) }, "Download HTML")),
    element("h3", {}, "By length of the reference, in words"), byLength,
    element("h3", {}, "F1 of words by their frequency in the references"),
    element("div", { class: "scroll", id: "frequencies" }, frequencyTable(state, systems)),
    element("h3", {}, "Sentences"), sentences);
  update();
}

function scoreTable(rows, systems, known) {
  const paired = systems.length > 1;
  const head = ["metric", "system", "score", "95 % interval", ...paired ? [`difference from ${systems[0]}`, "p"] : []];
  const body = rows.map((row) => element("tr", {},
    element("td", { title: row.signature }, `${row.metric} ${known[row.metric].higher_is_better ? "↑" : "↓"}`),
    element("td", {}, row.system),
    cell(row.score, known[row.metric]),
    element("td", { class: "number" }, `${written(row.lower, known[row.metric])} – ${written(row.upper, known[row.metric])}`),
    ...paired ? [cell(row.p_value == null ? null : row.difference, known[row.metric]),
      element("td", { class: "number" }, row.p_value == null ? "" : significance(row.p_value))] : []));
  return element("table", {}, element("thead", {}, element("tr", {}, ...head.map((text, index) => element("th", index > 1 ? { class: "number" } : {}, text)))),
    element("tbody", {}, ...body));
}

function significance(p) {
  return p < 0.001 ? "< 0.001 *" : `${p.toFixed(3)}${p < 0.05 ? " *" : ""}`;
}

function written(value, metric) {
  return value == null ? "" : value.toFixed(metric.digits);
}

function cell(value, metric) {
  return element("td", { class: "number" }, written(value, metric));
}

function lengthTable(state, systems, scores, metric) {
  const groups = BUCKETS.map(() => []);
  state.references.forEach((line, index) => groups[BUCKETS.findIndex((end) => words(line).length <= end)].push(index));
  const body = groups.flatMap((group, index) => group.length ? [element("tr", {},
    element("td", {}, rangeName(BUCKETS, index, 0)), element("td", { class: "number" }, String(group.length)),
    ...scores.map((row) => cell(group.reduce((sum, number) => sum + (row[number] ?? 0), 0) / group.length, metric)))] : []);
  const head = ["words", "sentences", ...systems].map((text, index) => element("th", index ? { class: "number" } : {}, text));
  return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
}

function rangeName(ends, index, lowest) {
  const first = index ? ends[index - 1] + 1 : lowest;
  if (ends[index] === Infinity) return `${first} and more`;
  return first === ends[index] ? `${first}` : `${first}–${ends[index]}`;
}

// Precision and recall of the words of a system within each sentence, words grouped by how often the references have them.
function frequencyTable(state, systems) {
  const references = state.references.map((line) => counted(words(line)));
  const frequency = new Map();
  references.forEach((line) => line.forEach((count, word) => frequency.set(word, (frequency.get(word) ?? 0) + count)));
  const group = (word) => FREQUENCIES.findIndex((end) => frequency.get(word) <= end);
  const sums = () => FREQUENCIES.map(() => 0);
  const add = (totals, line, weight) => line.forEach((count, word) => { if (frequency.has(word)) totals[group(word)] += weight(count, word); });
  const inReferences = sums();
  references.forEach((line) => add(inReferences, line, (count) => count));
  const scores = systems.map((system) => {
    const [written, common] = [sums(), sums()];
    state.systems[system].forEach((text, index) => {
      const line = counted(words(text));
      add(written, line, (count) => count);
      add(common, line, (count, word) => Math.min(count, references[index].get(word) ?? 0));
    });
    return common.map((count, index) => (200 * count) / (written[index] + inReferences[index]));
  });
  const body = FREQUENCIES.flatMap((_, index) => inReferences[index] ? [element("tr", {},
    element("td", {}, rangeName(FREQUENCIES, index, 1)), element("td", { class: "number" }, String(inReferences[index])),
    ...scores.map((row) => element("td", { class: "number" }, row[index].toFixed(1))))] : []);
  const head = ["occurrences", "words", ...systems].map((text, index) => element("th", index ? { class: "number" } : {}, text));
  return element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
}

function counted(list) {
  const counts = new Map();
  list.forEach((word) => counts.set(word, (counts.get(word) ?? 0) + 1));
  return counts;
}

function sentenceTable(state, systems, scores, metric, contained, order, sort) {
  const difference = (index) => Math.abs((scores[0][index] ?? 0) - (scores[1]?.[index] ?? 0));
  const value = { line: (index) => -index, difference, ...Object.fromEntries(systems.map((system, s) => [`score ${system}`, (index) => scores[s][index] ?? 0])) };
  if (!(order.column in value)) order.column = "line";
  const text = contained.toLowerCase();
  const shown = state.references.map((_, index) => index).filter((index) => !text
    || [state.references, ...Object.values(state.systems)].some((column) => column[index].toLowerCase().includes(text)));
  shown.sort((a, b) => (value[order.column](b) - value[order.column](a)) * (order.down ? 1 : -1) || a - b);
  const columns = ["line", ...systems.map((system) => `score ${system}`), ...systems.length > 1 ? ["difference"] : []];
  const head = columns.map((name) => element("th", { class: "number", "aria-sort": order.column === name ? (order.down ? "descending" : "ascending") : "none" },
    element("button", { onclick: () => sort(name) }, name)));
  const body = shown.slice(0, SHOWN).map((index) => element("tr", {},
    element("td", { class: "number" }, String(index + 1)),
    ...systems.map((_, s) => cell(scores[s][index], metric)),
    ...systems.length > 1 ? [cell(difference(index), metric)] : [],
    element("td", { class: "text" }, state.references[index]),
    ...systems.map((system) => element("td", { class: "text" }, ...marked(state.systems[system][index], state.references[index])))));
  const caption = shown.length > SHOWN ? [element("caption", {}, `The first ${SHOWN} of ${shown.length} sentences`)] : [];
  return element("table", {}, ...caption,
    element("thead", {}, element("tr", {}, ...head, element("th", {}, "reference"), ...systems.map((system) => element("th", {}, system)))),
    element("tbody", {}, ...body));
}

// The words of a text; those that are not part of the longest common subsequence with the reference are marked.
function marked(text, reference) {
  const [a, b] = [words(text), words(reference)];
  const longest = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const nodes = [];
  for (let i = 0, j = 0; i < a.length; i += 1) {
    while (j < b.length && a[i] !== b[j] && longest[i][j + 1] === longest[i][j]) j += 1;
    const common = j < b.length && a[i] === b[j];
    if (common) j += 1;
    nodes.push(common ? a[i] : element("mark", {}, a[i]), " ");
  }
  return nodes;
}

function table(state, systems, rows, names) {
  const columns = names.flatMap((metric) => systems.map((system) => rows.find((row) => row.metric === metric && row.system === system)));
  const head = ["line", ...columns.map((row) => `${row.metric} ${row.system}`), "reference", ...systems];
  const body = state.references.map((reference, index) => [index + 1, ...columns.map((row) => row.segments[index] ?? ""), reference,
    ...systems.map((system) => state.systems[system][index])]);
  return [head, ...body].map((row) => row.map((text) => String(text).replace(/\t/g, " ")).join("\t")).join("\n") + "\n";
}

// The result as one HTML file without scripts.
function page(place) {
  const copy = place.cloneNode(true);
  copy.querySelectorAll(".options").forEach((node) => node.remove());
  copy.querySelectorAll("button").forEach((node) => node.replaceWith(node.textContent));
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).map((rule) => rule.cssText).join("\n");
  const head = `<meta charset="utf-8"><title>Comparison</title><style>${rules}</style>`;
  return `<!doctype html><html lang="en"><head>${head}</head><body><main>${copy.innerHTML}</main></body></html>\n`;
}

function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
