// The view Runs: a table of runs with what differs between their configs, and the curves of chosen ones.

import { COLOURS, lineChart, short } from "/page/chart.js";
import { ask, element, labelled, say } from "/page/page.js";

const SECONDS = 3; // between two requests
const MOST_CHOSEN = 50;
const MOST_KEYS = 8; // columns of differing keys

export async function show(view, { runs: hasRuns }) {
  if (!hasRuns) {
    view.replaceChildren(element("p", {}, "The server shows no runs; start it with --runs=FOLDER."));
    return;
  }
  const address = new URLSearchParams(location.search);
  const state = {
    chosen: address.getAll("run"),
    sort: address.get("sort") ?? "run",
    down: address.has("down"),
  };
  const filter = element("input", { type: "search", id: "filter", value: address.get("filter") ?? "" });
  const measure = element("select", { id: "measure" });
  const logarithmic = element("input", { type: "checkbox", id: "log", checked: address.has("log") });
  const table = element("div", { class: "scroll" });
  const chart = lineChart();
  const curves = new Map(); // run and measure: {since, points, problem}
  let listed = { runs: [], measures: [] };
  let wanted = address.get("measure");

  function remember() {
    const now = new URLSearchParams();
    state.chosen.forEach((run) => now.append("run", run));
    if (wanted) now.set("measure", wanted);
    if (filter.value) now.set("filter", filter.value);
    if (state.sort !== "run") now.set("sort", state.sort);
    if (state.down) now.set("down", "1");
    if (logarithmic.checked) now.set("log", "1");
    history.replaceState(null, "", `/runs${now.size ? `?${now}` : ""}`);
  }

  const keyOf = (run) => `${measure.value}\n${run}`;

  function drawChart() {
    const series = state.chosen.map((run, index) => {
      const found = curves.get(keyOf(run));
      const row = listed.runs.find((one) => one.run === run);
      const note = [row ? row.state : "deleted", found?.problem].filter(Boolean).join(", ");
      return { name: run, colour: index % COLOURS, points: found?.points ?? [], note: note === "finished" ? "" : note };
    });
    chart.draw(series, { logarithmic: logarithmic.checked, title: measure.value });
    chart.node.hidden = !series.length;
  }

  function drawTable() {
    const focused = document.activeElement?.dataset?.name;
    table.replaceChildren(runTable(shownRows(listed.runs, filter.value), state, {
      sort: (column) => {
        state.down = state.sort === column ? !state.down : false;
        state.sort = column;
        remember();
        drawTable();
      },
      choose: (run, checked) => {
        state.chosen = checked ? [...state.chosen, run].slice(-MOST_CHOSEN) : state.chosen.filter((one) => one !== run);
        remember();
        drawTable();
        load().catch((error) => say(error.message, true));
      },
    }));
    if (focused) table.querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus();
  }

  function drawMeasures() {
    const present = [...measure.options].map((option) => option.value);
    if (present.join("\n") === listed.measures.join("\n")) return;
    const usual = listed.runs.find((row) => listed.measures.includes(row.measure))?.measure ?? "loss";
    const choice = [wanted, measure.value, usual].find((name) => listed.measures.includes(name)) ?? listed.measures[0];
    measure.replaceChildren(...listed.measures.map((name) => element("option", { selected: name === choice }, name)));
  }

  // Asks for what the chosen runs have logged since the last time.
  async function load() {
    const known = new Set(listed.runs.map((row) => row.run));
    const runs = state.chosen.filter((run) => known.has(run) || curves.has(keyOf(run)));
    const name = measure.value;
    if (runs.length && name) {
      const since = runs.map((run) => curves.get(keyOf(run))?.since ?? "");
      for (const [index, one] of (await ask("/api/curves", { runs, measures: [name], since })).entries()) {
        const key = `${name}\n${one.run}`;
        const old = curves.get(key);
        if ((old?.since ?? "") !== since[index]) continue; // another answer came first
        const points = one.restarted ? [] : old?.points ?? [];
        curves.set(key, { since: one.since, problem: one.problem || (one.restarted ? "" : old?.problem), points: [...points, ...one.points[name] ?? []] });
      }
    }
    drawChart();
  }

  async function refresh() {
    const before = JSON.stringify(listed);
    listed = await ask("/api/runs", {});
    if (JSON.stringify(listed) !== before) {
      drawMeasures();
      drawTable();
    }
    await load();
  }

  async function poll() {
    try {
      if (!document.hidden) await refresh();
      if (document.getElementById("status").classList.contains("error")) say("");
    } catch (error) {
      say(error.message, true);
    }
    setTimeout(poll, SECONDS * 1000);
  }

  filter.addEventListener("input", () => { remember(); drawTable(); });
  logarithmic.addEventListener("change", () => { remember(); drawChart(); });
  measure.addEventListener("change", () => {
    wanted = measure.value;
    remember();
    load().catch((error) => say(error.message, true));
  });
  view.replaceChildren(
    element("div", { class: "options" }, labelled("Measure", measure), element("label", { class: "inline" }, logarithmic, "Logarithmic"),
      labelled("Runs that contain", filter)),
    chart.node, table);
  chart.node.hidden = true;
  await poll();
}

function shownRows(rows, text) {
  const parts = text.toLowerCase().split(/\s+/).filter(Boolean);
  const content = (row) => [row.run, row.state, row.task, row.model, ...Object.entries(row.differs).map(([key, value]) => `${key}=${value}`)].join(" ").toLowerCase();
  return rows.filter((row) => parts.every((part) => content(row).includes(part)));
}

function runTable(rows, state, { sort, choose }) {
  const different = [...new Set(rows.flatMap((row) => Object.keys(row.differs)))]
    .filter((key) => new Set(rows.filter((row) => row.task).map((row) => row.differs[key])).size > 1);
  const keys = different.slice(0, MOST_KEYS);
  const columns = { // name: [value to sort by, content of the cell, whether it is a number]
    run: [(row) => row.run, (row) => named(row)],
    state: [(row) => row.state, (row) => condition(row)],
    step: [(row) => row.step, (row) => row.step === null ? "" : `${row.step.toLocaleString("en")}${row.steps ? ` / ${row.steps.toLocaleString("en")}` : ""}`, true],
    best: [(row) => row.best, (row) => row.best === null ? "" : element("span", { title: `${row.measure} at step ${row.best_step}` }, short(row.best),
      element("span", { class: "quiet" }, ` ${row.measure.replace("dev/", "")}`)), true],
    ...Object.fromEntries(keys.map((key) => [key, [(row) => numeric(row.differs[key]), (row) => row.differs[key] ?? ""]])),
    model: [(row) => row.model, (row) => [row.task, row.model].filter(Boolean).join(": ")],
    parameters: [(row) => row.parameters, (row) => row.parameters?.toLocaleString("en") ?? "", true],
    changed: [(row) => row.changed, (row) => row.changed === null ? "" : ago(row.changed), true],
  };
  const value = (columns[state.sort] ?? columns.run)[0];
  const sorted = rows.map((row, index) => [value(row) ?? null, index, row]).sort(([a, i], [b, j]) => {
    if (a === b) return i - j;
    if (a === null || b === null) return a === null ? 1 : -1; // what is missing comes last
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
    return (state.down ? -order : order) || i - j;
  }).map(([, , row]) => row);
  const head = Object.entries(columns).map(([name, [, , isNumber]]) => element("th", {
    class: isNumber ? "number" : undefined, "aria-sort": state.sort === name ? (state.down ? "descending" : "ascending") : "none",
  }, element("button", { "data-name": `sort ${name}`, onclick: () => sort(name), title: name }, name.slice(name.lastIndexOf(".") + 1))));
  const body = sorted.map((row) => {
    const index = state.chosen.indexOf(row.run);
    const box = element("input", {
      type: "checkbox", checked: index >= 0, "aria-label": `Show ${row.run}`, "data-name": `run ${row.run}`, onchange: () => choose(row.run, box.checked),
    });
    return element("tr", {}, element("td", {}, box, index >= 0 ? element("span", { class: `swatch series-${index % COLOURS}` }) : ""),
      ...Object.values(columns).map(([, content, isNumber]) => element("td", isNumber ? { class: "number" } : {}, content(row))));
  });
  const more = different.length - keys.length;
  return element("table", { class: "runs" },
    element("caption", {}, `${rows.length} ${rows.length === 1 ? "run" : "runs"}${more > 0 ? `; ${more} more keys differ` : ""}`),
    element("thead", {}, element("tr", {}, element("th"), ...head)), element("tbody", {}, ...body));
}

function named(row) {
  const parts = row.run.split(/(?<=[,/])/).flatMap((part, index) => index ? [element("wbr"), part] : [part]); // may break there
  if (!row.served) return element("span", {}, ...parts);
  return element("a", { href: `/translate?${new URLSearchParams({ model: row.served })}`, title: "Translate with this model" }, ...parts);
}

function condition(row) {
  const node = element("span", { class: `state ${row.state}` }, row.state);
  return row.problem ? element("span", {}, node, element("span", { class: "quiet problem" }, row.problem)) : node;
}

function numeric(text) {
  return text === undefined ? null : text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

function ago(seconds) {
  const past = Math.max(Date.now() / 1000 - seconds, 0);
  const units = [["d", 86400], ["h", 3600], ["min", 60]];
  const [name, size] = units.find(([, length]) => past >= length) ?? ["s", 1];
  return `${Math.floor(past / size)} ${name} ago`;
}
