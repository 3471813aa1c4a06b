// The view Metrics: what each metric matched in a hypothesis and a reference, and how its score follows from it.

import { alignmentOf, edits } from "/page/aligned.js";
import { sentences } from "/page/linked.js";
import { flow, similarity } from "/page/matches.js";
import { ngrams } from "/page/ngrams.js";
import { ask, debounced, element, say } from "/page/page.js";

const KINDS = { ngrams, edits, alignment: alignmentOf, similarity, transport: flow, score: plainTexts };

export async function show(view, { metrics }) {
  const address = new URLSearchParams(location.search);
  const texts = Object.fromEntries(["hypothesis", "reference"].map((name) => [name, element("textarea", {
    id: name, rows: 2, maxlength: 2000, spellcheck: "false",
  })]));
  for (const [name, box] of Object.entries(texts)) box.value = address.get(name) ?? "";
  let chosen = metrics.some((metric) => metric.name === address.get("metric")) ? address.get("metric") : metrics[0]?.name;
  const buttons = element("div", { class: "options", role: "group", "aria-label": "Metrics" });
  const result = element("section", { id: "explanation", class: "panel" });
  let running = new AbortController();
  let found = [];

  function remember() {
    const state = new URLSearchParams();
    for (const [name, box] of Object.entries(texts)) if (box.value) state.set(name, box.value);
    if (chosen !== metrics[0]?.name) state.set("metric", chosen);
    history.replaceState(null, "", `/explain${state.size ? `?${state}` : ""}`);
  }

  function draw() {
    buttons.replaceChildren(...metrics.map((metric) => {
      const one = found.find((explained) => explained.metric === metric.name);
      return element("button", {
        class: "metric", "aria-pressed": String(metric.name === chosen), onclick: () => choose(metric.name),
      }, metric.name, " ", element("span", { class: "score" }, written(one?.score, metric)));
    }));
    const one = found.find((explained) => explained.metric === chosen);
    result.hidden = !one;
    if (!one) return;
    const metric = metrics.find((known) => known.name === chosen);
    result.replaceChildren(
      element("h2", {}, `${one.metric} ${written(one.score, metric)} `,
        element("span", { class: "quiet" }, metric.higher_is_better ? "higher is better" : "lower is better")),
      ...one.equation.map((line) => element("p", { class: "equation" }, line)),
      ...one.note ? [element("p", {}, one.note)] : [],
      ...KINDS[one.kind](one),
      element("p", { class: "quiet signature" }, one.signature));
  }

  function choose(name) {
    chosen = name;
    remember();
    draw();
    buttons.querySelector("[aria-pressed=true]").focus();
  }

  async function explain() {
    running.abort();
    running = new AbortController();
    remember();
    const body = Object.fromEntries(Object.entries(texts).map(([name, box]) => [name, box.value.replace(/\s*[\r\n]+\s*/g, " ")]));
    if (!body.reference.trim() && !body.hypothesis.trim()) {
      found = [];
      say("");
      return draw();
    }
    try {
      found = await ask("/api/explain", body, running.signal);
      say("");
      draw();
    } catch (error) {
      if (error.name !== "AbortError") say(error.message, true);
    }
    return undefined;
  }

  const soon = debounced(explain);
  for (const box of Object.values(texts)) box.addEventListener("input", soon);
  view.replaceChildren(
    element("div", { class: "columns" }, ...["hypothesis", "reference"].map((name) => element("label", { class: "wide" },
      element("span", {}, name[0].toUpperCase() + name.slice(1)), texts[name]))),
    buttons, result);
  texts.hypothesis.focus();
  draw();
  await explain();
}

function written(score, metric) {
  return typeof score === "number" ? score.toFixed(metric.digits) : "–";
}

function plainTexts(one) {
  return sentences(one).nodes;
}
