"use strict";
/* The problem explorer: virtual rows, filters, state in location.hash, texts unpacked block by block on a click.
   Everything from a store is put on the page with textContent, never as HTML. */
(() => {
  const head = JSON.parse(document.getElementById("x-head").textContent);
  const $ = (id) => document.getElementById("x-" + id);
  const DEFAULTS = { task: head.tasks[0].name, seed: String(head.seeds[0]), solves: "", never: "", q: "", sort: "", open: "" };
  const state = { ...DEFAULTS };
  const grid = $("grid"), spacer = $("spacer"), dialog = $("dialog");
  const unpacked = new Map();
  let index = null, shown = [], at = 0, nodes = new Map();

  const make = (tag, css, text) => {
    const node = document.createElement(tag);
    if (css) node.className = css;
    if (text !== undefined) node.textContent = text;
    return node;
  };

  /* gzip + base64 of JSON, kept once unpacked; the last few text blocks only. */
  function unpack(id) {
    if (!unpacked.has(id)) {
      if (unpacked.size > 24) unpacked.delete(unpacked.keys().next().value);
      const binary = atob(document.getElementById(id).textContent.trim());
      const bytes = new Uint8Array(binary.length);
      for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      unpacked.set(id, new Response(stream).json());
    }
    return unpacked.get(id);
  }

  /* Correct counts of one column: of one seed, or summed over all. */
  function column(key) {
    const picked = head.models.flatMap((model, i) =>
      model.key === key && (model.seed === null || state.seed === "all" || String(model.seed) === state.seed) ? [i] : []);
    const of = picked.length * head.samples;
    return { of, at: (row) => picked.reduce((sum, i) => sum + index.counts[i][row], 0) };
  }

  function select(columns) {
    const words = state.q.toLowerCase();
    const solves = columns[state.solves], never = columns[state.never];
    const rows = [];
    for (let row = 0; row < index.ids.length; row++) {
      if (solves && solves.at(row) === 0) continue;
      if (never && (never.of === 0 || never.at(row) > 0)) continue;
      if (words && !index.search[row].includes(words)) continue;
      rows.push(row);
    }
    const [key, way] = state.sort.split("-");
    if (columns[key]) {
      const value = rows.reduce((all, row) => all.set(row, columns[key].at(row)), new Map());
      rows.sort((a, b) => (way === "asc" ? 1 : -1) * (value.get(a) - value.get(b)) || a - b);
    } else if (key === "problem") {
      rows.sort((a, b) => (way === "asc" ? 1 : -1) * index.ids[a].localeCompare(index.ids[b], "en", { numeric: true }));
    }
    return rows;
  }

  let current = {};
  async function update() {
    const number = Math.max(0, head.tasks.findIndex((task) => task.name === state.task));
    index = await unpack("x-index-" + number);
    index.search ??= index.ids.map((id, row) => (id + " " + index.asked[row]).toLowerCase());
    current = Object.fromEntries(head.columns.map(({ key }) => [key, column(key)]));
    shown = select(current);
    at = Math.max(0, shown.findIndex((row) => index.ids[row] === state.open));
    for (const node of nodes.values()) node.remove();
    nodes.clear();
    spacer.style.height = shown.length * rowHeight() + "px";
    grid.scrollTop = Math.max(0, (at - 2) * rowHeight());
    $("table").setAttribute("aria-rowcount", shown.length + 1);
    $("count").textContent = `${shown.length.toLocaleString("en")} of ${index.ids.length.toLocaleString("en")} problems`;
    $("empty").hidden = shown.length > 0;
    for (const { key } of [...head.columns, { key: "problem" }]) {
      const [by, way] = state.sort.split("-");
      $("sort-" + key).parentElement.setAttribute("aria-sort", by !== key ? "none" : way === "asc" ? "ascending" : "descending");
    }
    chips(current);
    draw();
    remember();
  }

  const size = (name) => parseFloat(getComputedStyle(grid).getPropertyValue(name));
  const rowHeight = () => size("--row");
  const viewHeight = () => grid.clientHeight - size("--top");

  function draw() {
    const height = rowHeight();
    const first = Math.max(0, Math.floor(grid.scrollTop / height) - 6);
    const last = Math.min(shown.length, Math.ceil((grid.scrollTop + viewHeight()) / height) + 6);
    for (const [i, node] of nodes) if (i !== at && (i < first || i >= last)) { node.remove(); nodes.delete(i); }
    for (let i = first; i < last; i++) if (!nodes.has(i)) place(i, height);
    if (shown.length && !nodes.has(at)) place(at, height);
  }

  function place(i, height) {
    const row = shown[i], node = make("div", "x-row");
    node.setAttribute("role", "row");
    node.setAttribute("aria-rowindex", i + 2);
    node.tabIndex = i === at ? 0 : -1;
    node.dataset.i = i;
    node.style.transform = `translateY(${i * height}px)`;
    const name = make("div", "x-name");
    name.setAttribute("role", "rowheader");
    name.append(make("span", "x-asked", index.asked[row] || index.ids[row]));
    if (index.asked[row]) name.append(make("code", "", index.ids[row]));
    node.append(name);
    for (const { key, label, css } of head.columns) {
      const { of, at: value } = current[key], cell = make("div", "x-cell"), bar = make("span", "bar"), fill = make("i");
      cell.setAttribute("role", "gridcell");
      cell.dataset.label = label;
      cell.append(make("span", "x-number", of ? `${value(row)}` : "–"));
      if (of) cell.lastChild.append(make("small", "", `/${of}`));
      fill.style.width = (of ? (100 * value(row)) / of : 0) + "%";
      fill.style.background = `var(--${css})`;
      bar.append(fill);
      cell.append(bar);
      node.append(cell);
    }
    nodes.set(i, node);
    spacer.append(node);
  }

  function move(to) {
    if (!shown.length) return;
    const height = rowHeight(), before = nodes.get(at);
    at = Math.min(shown.length - 1, Math.max(0, to));
    if (before) before.tabIndex = -1;
    if (at * height < grid.scrollTop) grid.scrollTop = at * height;
    if ((at + 1) * height > grid.scrollTop + viewHeight()) grid.scrollTop = (at + 1) * height - viewHeight();
    draw();
    nodes.get(at).tabIndex = 0;
  }

  /* The ready-made questions, with how many problems answer them. */
  function chips(columns) {
    const named = (name) => head.columns.find((one) => one.name === name);
    const pairs = [["es", "grpo"], ["grpo", "es"], ["es", "base"], ["base", "es"], ["base", "grpo"]];
    $("chips").replaceChildren(...pairs.flatMap(([a, b]) => {
      const x = named(a), y = named(b);
      if (!x || !y) return [];
      let many = 0;
      for (let row = 0; row < index.ids.length; row++)
        if (columns[x.key].at(row) > 0 && columns[y.key].of && columns[y.key].at(row) === 0) many++;
      const chip = make("button", "x-chip", `${x.label} solves, ${y.label} never `);
      const on = state.solves === x.key && state.never === y.key;
      chip.type = "button";
      chip.setAttribute("aria-pressed", on);
      chip.append(make("b", "", many.toLocaleString("en")));
      chip.addEventListener("click", () => set({ solves: on ? "" : x.key, never: on ? "" : y.key }));
      return [chip];
    }));
  }

  const VERDICT = (bits) =>
    bits & 16 ? ["down", "verifier timed out"] : bits & 8 ? ["down", "verifier failed"] : bits & 1 ? ["up", "correct"]
      : bits & 2 ? ["down", "wrong"] : ["down", "not in the required form"];

  async function open(i) {
    move(i);
    const row = shown[at], number = head.tasks.findIndex((task) => task.name === state.task), task = head.tasks[number];
    state.open = index.ids[row];
    remember();
    $("title").textContent = index.ids[row];
    $("place").textContent = `${at + 1} of ${shown.length}`;
    $("previous").disabled = at === 0;
    $("next").disabled = at === shown.length - 1;
    const body = $("body");
    body.setAttribute("aria-busy", "true");
    if (!dialog.open) dialog.showModal();
    const id = `x-text-${number}-${Math.floor(row / head.block)}`;
    const found = task.private ? null : (await unpack(id))[row % head.block];
    if (state.open !== index.ids[row]) return;
    body.replaceChildren();
    if (task.private) body.append(make("p", "", "The terms of this task forbid showing its texts."));
    else {
      if (found.question) body.append(make("pre", "wrap x-question", found.question));
      if (found.gold) { const gold = make("p", "", "Answer: "); gold.append(make("code", "", found.gold)); body.append(gold); }
    }
    const columns = make("div", "x-models");
    head.models.forEach((model, m) => {
      if (model.seed !== null && state.seed !== "all" && String(model.seed) !== state.seed) return;
      columns.append(section(model, index.counts[m][row], found ? found.texts[m] : []));
    });
    body.append(columns);
    body.removeAttribute("aria-busy");
    body.scrollTop = 0;
  }

  function section(model, correct, texts) {
    const node = make("details", "x-model"), title = make("summary");
    node.open = texts.length > 0 && (window.innerWidth >= 700 || model.key === "base");
    const mark = make("i", "x-mark");
    mark.style.background = `var(--${model.css})`;
    title.append(mark, make("b", "", model.label + (model.seed === null ? "" : ` · seed ${model.seed}`)), ` ${correct}/${head.samples} correct`);
    node.append(title);
    for (const [sample, bits, tokens, text] of texts) {
      const [css, word] = VERDICT(bits), answer = make("article", "answer"), top = make("h4");
      top.append(make("span", css, (css === "up" ? "✓ " : "✗ ") + word), ` · response ${sample}, ${tokens} tokens`);
      if (bits & 4) top.append(make("span", "x-cut", " · truncated at the token limit"));
      answer.append(top, make("pre", "wrap", text + (bits & 32 ? " …" : "")));
      node.append(answer);
    }
    return node;
  }

  function set(changes) {
    Object.assign(state, { open: "" }, changes);
    for (const name of ["task", "seed", "solves", "never", "q"]) if ($(name) && $(name).value !== state[name]) $(name).value = state[name];
    return update();
  }

  function remember() {
    const kept = Object.entries(state).filter(([key, value]) => value !== DEFAULTS[key]);
    const hash = "#problems" + (kept.length ? "?" + new URLSearchParams(kept) : "");
    const here = location.hash;
    if (here === hash || (!kept.length && !here.startsWith("#problems"))) return;
    history.replaceState(null, "", hash);
  }

  function recall() {
    const [place, query] = location.hash.split("?");
    if (place !== "#problems") return false;
    Object.assign(state, DEFAULTS);
    for (const [key, value] of new URLSearchParams(query || "")) if (key in state) state[key] = value;
    if (!head.tasks.some((task) => task.name === state.task)) state.task = DEFAULTS.task;
    return Boolean(query);
  }

  async function start() {
    const linked = recall(), wanted = state.open;
    await set({ open: wanted });
    if (!linked) return;
    document.getElementById("problems").scrollIntoView();
    const i = shown.findIndex((row) => index.ids[row] === wanted);
    if (wanted && i >= 0) await open(i);
  }

  if (typeof DecompressionStream === "undefined") {
    $("count").textContent = "The explorer needs a browser of 2023 or newer.";
    return;
  }
  for (const name of ["task", "seed", "solves", "never"]) $(name).addEventListener("change", (event) => set({ [name]: event.target.value }));
  $("q").addEventListener("input", (event) => set({ q: event.target.value }));
  $("clear").addEventListener("click", () => set({ ...DEFAULTS, task: state.task, seed: state.seed }));
  for (const { key } of [...head.columns, { key: "problem" }])
    $("sort-" + key).addEventListener("click", () => {
      const first = key === "problem" ? "asc" : "desc", other = first === "asc" ? "desc" : "asc";
      set({ sort: state.sort === `${key}-${first}` ? `${key}-${other}` : state.sort === `${key}-${other}` ? "" : `${key}-${first}` });
    });
  grid.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  window.addEventListener("resize", () => { for (const node of nodes.values()) node.remove(); nodes.clear(); spacer.style.height = shown.length * rowHeight() + "px"; draw(); });
  grid.addEventListener("click", (event) => { const row = event.target.closest(".x-row"); if (row) open(Number(row.dataset.i)); });
  grid.addEventListener("keydown", (event) => {
    if (event.target.closest("button")) return;
    const page = Math.max(1, Math.floor(viewHeight() / rowHeight()) - 1);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: shown.length - 1 }[event.key];
    if (to !== undefined) { move(to); nodes.get(at)?.focus({ preventScroll: true }); }
    else if ((event.key === "Enter" || event.key === " ") && shown.length) open(at);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft" && at > 0) open(at - 1);
    if (event.key === "ArrowRight" && at < shown.length - 1) open(at + 1);
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { state.open = ""; remember(); nodes.get(at)?.focus({ preventScroll: true }); });
  $("previous").addEventListener("click", () => open(at - 1));
  $("next").addEventListener("click", () => open(at + 1));
  $("close").addEventListener("click", () => dialog.close());
  window.addEventListener("hashchange", start);
  start();
})();
