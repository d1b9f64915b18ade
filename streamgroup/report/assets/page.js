"use strict";
(() => {
  const content = JSON.parse(document.getElementById("content").textContent);
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const views = new Map();
  // Beyond so many rows a canvas draws faster than SVG.
  const MANY = 4000;
  const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

  const theme = () => root.dataset.theme || (dark.matches ? "dark" : "light");

  // A column is a list, or (where values repeat) its distinct values and the place of each row's among them.
  const columns = new Map();
  function column(table, name) {
    const key = `${table}/${name}`;
    if (!columns.has(key)) {
      const stored = content.tables[table].columns[name];
      columns.set(key, Array.isArray(stored) ? stored : stored.places.map((place) => stored.values[place]));
    }
    return columns.get(key);
  }

  function rows(table) {
    const names = Object.keys(content.tables[table].columns);
    const found = names.map((name) => column(table, name));
    return Array.from({ length: content.tables[table].rows }, (_, row) =>
      Object.fromEntries(names.map((name, at) => [name, found[at][row]]))
    );
  }

  // ---- charts ----

  function domains(part, found = []) {
    if (part && typeof part === "object") {
      if (part.scale && Array.isArray(part.scale.domain)) found.push(...part.scale.domain);
      Object.values(part).forEach((inner) => domains(inner, found));
    }
    return found.filter((value) => typeof value === "string");
  }

  function fitted(chart, width) {
    const spec = JSON.parse(JSON.stringify(chart.specs[theme()]));
    const config = JSON.parse(JSON.stringify(content.config[theme()]));
    const longest = Math.max(8, ...domains(spec).map((name) => name.length));
    config.font = FONT;
    config.legend.columns = Math.max(1, Math.floor(width / (longest * 7.2 + 34)));
    if (spec.facet) {
      const panels = new Set(column(spec.data.name, spec.facet.field)).size;
      const apart = ((spec.resolve || {}).scale || {}).y === "independent";
      // Two units of one run stand side by side.
      const most = apart ? 2 : panels;
      spec.columns = Math.max(1, Math.min(most, Math.floor(width / 350) || 1));
      spec.spacing = 18;
      const axes = apart ? 60 * spec.columns : 74;
      spec.spec.width = Math.floor((width - axes - 18 * (spec.columns - 1)) / spec.columns);
    } else {
      spec.width = Math.floor(width);
      spec.autosize = { type: "fit-x", contains: "padding", resize: false };
    }
    if (width < 520) config.axis.labelLimit = config.axisLabelLimit = 90;
    delete config.axisLabelLimit;
    spec.datasets = Object.fromEntries(chart.data.map((name) => [name, rows(name)]));
    return { spec, config };
  }

  async function draw(chart) {
    const place = document.querySelector(`#chart-${chart.name} .view`);
    const width = place.clientWidth;
    if (!width) return;
    const { spec, config } = fitted(chart, width);
    const many = chart.data.some((name) => content.tables[name].rows > MANY);
    const result = await window.vegaEmbed(place, spec, {
      mode: "vega-lite", actions: false, config, renderer: many ? "canvas" : "svg", tooltip: { theme: theme() },
    });
    views.set(chart.name, { result, width });
  }

  let drawing = Promise.resolve();
  function drawAll(changed = () => true) {
    drawing = drawing.then(async () => {
      for (const chart of content.charts) {
        if (!changed(chart)) continue;
        const before = views.get(chart.name);
        if (before) before.result.finalize();
        await draw(chart);
      }
      root.dataset.drawn = String(views.size);
    });
    return drawing;
  }

  // ---- downloads ----

  function save(name, type, text) {
    const link = document.createElement("a");
    link.download = name;
    link.href = URL.createObjectURL(new Blob([text], { type }));
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  function quoted(value) {
    if (value === null || value === undefined) return "";
    const text = String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  function csv(table) {
    const names = Object.keys(content.tables[table].columns);
    const found = names.map((name) => column(table, name));
    const lines = [names.map(quoted).join(",")];
    for (let row = 0; row < content.tables[table].rows; row += 1) {
      lines.push(found.map((values) => quoted(values[row])).join(","));
    }
    return `${lines.join("\n")}\n`;
  }

  const offers = {
    csv: (name, table) => save(`${name}.csv`, "text/csv", csv(table)),
    json: (name, table) => save(`${name}.json`, "application/json", `${JSON.stringify(rows(table), null, 1)}\n`),
    svg: async (name, _, chart) => save(`${name}.svg`, "image/svg+xml", await views.get(chart).result.view.toSVG()),
  };

  // ---- tables ----

  function before(left, right) {
    if (left === right) return 0;
    if (left === null) return 1;
    if (right === null) return -1;
    return left < right ? -1 : 1;
  }

  function sort(header) {
    const table = header.closest("table");
    const up = header.getAttribute("aria-sort") !== "ascending";
    const values = column(table.dataset.table, header.dataset.column);
    const body = table.tBodies[0];
    const ordered = [...body.rows].sort((a, b) => {
      const [left, right] = [values[a.dataset.row], values[b.dataset.row]];
      // What is not there comes last either way.
      const turned = up || left === null || right === null ? before(left, right) : before(right, left);
      return turned || a.dataset.row - b.dataset.row;
    });
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...ordered);
  }

  // ---- the page ----

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.offer) offers[button.dataset.offer](button.dataset.file, button.dataset.table, button.dataset.chart);
    else if (button.id === "theme") {
      root.dataset.theme = theme() === "dark" ? "light" : "dark";
      drawAll();
    } else if (button.closest("th")) sort(button.closest("th"));
  });
  dark.addEventListener("change", () => root.dataset.theme || drawAll());

  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(
      () => drawAll((chart) => {
        const place = document.querySelector(`#chart-${chart.name} .view`);
        return place.clientWidth !== (views.get(chart.name) || {}).width;
      }), 150);
  });
  for (const button of document.querySelectorAll("button[hidden]")) button.hidden = false;
  drawAll();
})();
