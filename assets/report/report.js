"use strict";
(() => {
  const read = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Ink and grid are the page's; what a curve's colour means is the figure's own.
  const look = (layout) => {
    const changes = { "font.color": read("--ink"), "hoverlabel.bgcolor": read("--card"), "hoverlabel.bordercolor": read("--line"),
      "hoverlabel.font.color": read("--ink") };
    for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
      changes[`${axis}.gridcolor`] = read("--line");
      changes[`${axis}.linecolor`] = read("--line");
    }
    return changes;
  };

  const sample = (trace) => {
    const style = trace.line || {};
    const color = style.color || (trace.marker || {}).color || read("--mute");
    const dashes = { dot: "2 3", dash: "6 4", dashdot: "6 3 2 3", longdash: "10 4" };
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const shape = document.createElementNS("http://www.w3.org/2000/svg", trace.type === "bar" ? "rect" : "line");
    const set = (node, values) => Object.entries(values).forEach(([key, value]) => node.setAttribute(key, value));
    set(svg, { width: 26, height: 12, "aria-hidden": "true" });
    set(shape, trace.type === "bar" ? { x: 7, y: 0, width: 12, height: 12, rx: 2, fill: color }
      : { x1: 0, y1: 6, x2: 26, y2: 6, stroke: color, "stroke-width": 2.5, "stroke-dasharray": dashes[style.dash] || "" });
    svg.append(shape);
    return svg;
  };

  const legend = (plot, figure) => {
    const list = document.createElement("div");
    list.className = "legend";
    figure.data.forEach((trace, index) => {
      if (!trace.name) return;
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", String(trace.visible !== "legendonly"));
      button.title = "Show or hide";
      button.append(sample(trace), trace.name);
      button.addEventListener("click", () => {
        const shown = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(shown));
        Plotly.restyle(plot, { visible: shown ? true : "legendonly" }, [index]);
      });
      list.append(button);
    });
    if (list.children.length) plot.after(list);
  };

  const config = { responsive: true, displaylogo: false, displayModeBar: "hover", modeBarButtonsToRemove: ["lasso2d", "select2d"] };
  const drawn = [];
  for (const plot of document.querySelectorAll(".plot")) {
    const figure = JSON.parse(plot.querySelector("script").textContent);
    plot.textContent = "";
    delete figure.layout.height;
    drawn.push(Plotly.newPlot(plot, figure.data, figure.layout, config).then(() => Plotly.relayout(plot, look(figure.layout))));
    legend(plot, figure);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const plot of document.querySelectorAll(".plot")) Plotly.relayout(plot, look(plot.layout));
  });
  Promise.all(drawn).then(() => document.documentElement.setAttribute("data-drawn", ""));
})();
