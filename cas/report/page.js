"use strict";
// Draws the charts that the page carries as JSON, in its colours and its width, and again whenever
// either changes: dark or light, wide or narrow, on paper.
(() => {
  const PAPER = 690, NARROW = 560, CELL = 65, SMALL = 46;
  const CONFIG = {displaylogo: false, displayModeBar: false, responsive: false};
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const boxes = [...document.querySelectorAll("[data-chart]")];
  let printing = false;

  const ink = () => dark.matches && !printing
    ? {text: "#d7dde4", grid: "#343c46", back: "#20262d", none: "#14181d", all: "#2c6fb5"}
    : {text: "#222a33", grid: "#dfe3e8", back: "#ffffff", none: "#ffffff", all: "#6aaef2"};

  function themed(layout, width) {
    const colours = ink();
    const font = {color: colours.text, size: width < NARROW ? 11 : 12, family: "system-ui, sans-serif"};
    const made = {...layout, width, font, paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)", dragmode: false,
      hoverlabel: {bgcolor: colours.back, bordercolor: colours.grid, font, align: "left"}};
    for (const name of Object.keys(made).filter(name => /^[xy]axis/.test(name))) {
      made[name] = {gridcolor: colours.grid, zerolinecolor: colours.grid, ...made[name]};
    }
    return made;
  }

  function shade(trace, layout, cell) {
    trace.colorscale = [[0, ink().none], [1, ink().all]];
    trace.textfont = {color: ink().text, size: cell < CELL ? 8.5 : 12};
    if (cell < SMALL) delete trace.texttemplate;
    trace.showscale = cell > 20;
    if (cell < 24) Object.assign(layout.xaxis, {tickangle: -90, tickfont: {size: cell < 12 ? 7 : 11}});
  }

  function draw(box) {
    const view = figures[box.dataset.chart][Number(box.dataset.view || 0)];
    const width = printing ? PAPER : Math.max(280, box.clientWidth);
    const length = width < NARROW ? "narrow" : "wide";
    const layout = themed(structuredClone(view.layout), width);
    const data = structuredClone(view.data);
    for (const [where, texts] of Object.entries(view.names)) {
      if (where === "node") data[0].node.label = texts[length];
      else layout[where].ticktext = texts[length];
    }
    if (box.dataset.log === "1") layout.xaxis = {...layout.xaxis, type: "log", dtick: 1};
    for (const trace of data) {
      if (trace.type === "sankey") trace.textfont = {color: ink().text, size: length === "narrow" ? 10 : 12};
      if (trace.type === "heatmap") shade(trace, layout, (width - 150) / trace.x.length);
    }
    // Not `react`: a flow would still be on its way to its new place when it is printed.
    Plotly.purge(box);
    Plotly.newPlot(box, data, layout, CONFIG);
  }

  const drawAll = () => boxes.forEach(draw);
  drawAll();
  dark.addEventListener("change", drawAll);
  addEventListener("beforeprint", () => { printing = true; drawAll(); });
  addEventListener("afterprint", () => { printing = false; drawAll(); });
  let last = innerWidth, waiting = 0;
  addEventListener("resize", () => {
    if (innerWidth === last || printing) return;
    last = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 100);
  });
  for (const chooser of document.querySelectorAll("[data-for]")) {
    chooser.addEventListener("change", () => {
      const box = document.getElementById(chooser.dataset.for);
      if (chooser.type === "checkbox") box.dataset.log = chooser.checked ? "1" : "0";
      else box.dataset.view = chooser.value;
      draw(box);
    });
  }
})();
