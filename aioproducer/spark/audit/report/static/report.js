// Makes the report's tables sort and filter, and draws its plots. Needs nothing but uPlot, which is in the page as well.
"use strict";

(() => {
  const COLORS = ["#0969da", "#cf222e", "#1a7f37", "#8250df", "#bf8700", "#57606a"];
  const HEIGHT = 260;
  const FEW = 8; // rows: so many need no filter

  const made = (name, properties) => Object.assign(document.createElement(name), properties);
  const rowsOf = (group) => [...group.rows].filter((row) => !row.classList.contains("group"));

  // Tables

  function compare(one, other) {
    const [a, b] = [one.dataset.value, other.dataset.value];
    if (a !== undefined && b !== undefined) return a - b;
    if (a !== undefined || b !== undefined) return a === undefined ? 1 : -1;
    return one.textContent.localeCompare(other.textContent, "en", { numeric: true });
  }

  function sort(table, head) {
    const column = head.cellIndex;
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    for (const group of table.tBodies) {
      group.append(...rowsOf(group).sort((a, b) => sign * compare(a.cells[column], b.cells[column])));
    }
  }

  function makeSortable(table) {
    for (const head of table.tHead.rows[0].cells) {
      const button = made("button", { type: "button", textContent: head.textContent });
      button.addEventListener("click", () => sort(table, head));
      head.replaceChildren(button);
    }
  }

  // Filters: one for each section with much in it

  function show(section, wanted) {
    const has = (node) => node.textContent.toLowerCase().includes(wanted);
    for (const group of section.querySelectorAll("tbody")) {
      const heading = group.querySelector("tr.group");
      const all = heading !== null && has(heading);
      let left = 0;
      for (const row of rowsOf(group)) {
        row.hidden = !(all || has(row));
        left += !row.hidden;
      }
      if (heading !== null) heading.hidden = left === 0;
    }
    for (const figure of section.querySelectorAll("figure")) figure.hidden = !has(figure.querySelector("figcaption"));
  }

  function makeFilter(section) {
    const rows = [...section.querySelectorAll("thead ~ tbody")].flatMap(rowsOf);
    if (Math.max(rows.length, section.querySelectorAll("figure").length) <= FEW) return;
    const input = made("input", { type: "search", placeholder: "Show only what contains …" });
    input.setAttribute("aria-label", "Filter this section");
    input.addEventListener("input", () => show(section, input.value.trim().toLowerCase()));
    section.querySelector("h2").after(input);
  }

  // Plots

  const shown = (value, unit) => (value == null ? "–" : value.toLocaleString("en") + (unit && ` ${unit}`));

  function short(value) {
    for (const [size, unit] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
      if (Math.abs(value) >= size) return value / size + unit;
    }
    return String(value);
  }

  function series(plot) {
    return plot.series.map((label, number) => ({
      label,
      stroke: COLORS[number % COLORS.length],
      width: 2,
      value: (_, value) => shown(value, plot.unit),
      ...(plot.kind === "bars" && { width: 0, fill: COLORS[0], paths: uPlot.paths.bars({ size: [0.8, 60] }) }),
    }));
  }

  const DAY = "{YYYY}-{MM}-{DD}";
  const TIMES = [
    // from which step on, what is written, and what more where year, month, day begin; 1: both
    [86400, DAY, null, null, null, null, null, null, 1],
    [60, "{HH}:{mm}", `\n${DAY}`, null, `\n${DAY}`, null, null, null, 1],
    [1, "{HH}:{mm}:{ss}", `\n${DAY}`, null, `\n${DAY}`, null, null, null, 1],
  ];
  const WHOLE = [1, 2, 5].flatMap((step) => [1, 10, 100, 1000, 10000].map((power) => step * power)).sort((a, b) => a - b);

  function options(plot, width) {
    const isTime = plot.kind === "lines";
    const y = { scale: "y", values: (_, values) => values.map(short), size: 60, label: plot.unit || undefined };
    return {
      width,
      height: HEIGHT,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      scales: {
        x: { time: isTime, ...(!isTime && { range: (_, from, to) => [from - 0.5, to + 0.5] }) },
        y: { range: (_, from, to) => [0, uPlot.rangeNum(0, to || 1, 0.1, true)[1]] },
      },
      axes: [isTime ? { values: TIMES } : { label: plot.x, incrs: WHOLE }, y],
      series: [isTime ? { label: "UTC", value: `${DAY} {HH}:{mm}` } : { label: plot.x }, ...series(plot)],
      legend: { live: true },
    };
  }

  function draw(figure) {
    const plot = JSON.parse(figure.querySelector("script").textContent);
    const width = () => Math.max(figure.clientWidth, 200);
    const drawn = new uPlot(options(plot, width()), plot.data, figure);
    new ResizeObserver(() => {
      if (!figure.hidden && drawn.width !== width()) drawn.setSize({ width: width(), height: HEIGHT });
    }).observe(figure);
  }

  for (const table of document.querySelectorAll("table")) if (table.tHead) makeSortable(table);
  for (const section of document.querySelectorAll("section")) makeFilter(section);
  const textContent =
    "Point at a plot for its values; drag to zoom, double-click to zoom out; click a name to hide its line.";
  document.querySelector(".plots")?.before(made("p", { className: "hint", textContent }));
  for (const figure of document.querySelectorAll("figure")) draw(figure);
})();
