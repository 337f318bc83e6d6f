// Figures, which Plotly draws from the data in a page, in the page's colours and with a legend of buttons.
//
// The report embeds this file, so it imports nothing, and uses the Plotly of its page.

const PAPER = "#ffffff";
const ON_PAPER = "#1d2430";
const LINES_ON_PAPER = "#d5dae0";
// The font of pictures: one of these families is available nearly everywhere, and all have the same widths.
const PICTURE_FONT = 'Arial, Helvetica, "Liberation Sans", Arimo, sans-serif';
const SIZE = { width: 760, height: 480 };
const LEGEND = { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, xanchor: "left" };
const DASHES = { dot: "2 3", dash: "6 4", dashdot: "6 3 2 3", longdash: "10 4" };
const SVG = "http://www.w3.org/2000/svg";
const drawn = new Set();

const read = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const axesOf = (layout) => Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key));

// Text and grid have the page's colours; a curve's colour is the figure's own.
const look = (layout) => {
  const changes = {
    "font.color": read("--ink"),
    "hoverlabel.bgcolor": read("--card"),
    "hoverlabel.bordercolor": read("--line"),
    "hoverlabel.font.color": read("--ink"),
  };
  for (const axis of axesOf(layout)) {
    changes[`${axis}.gridcolor`] = read("--line");
    changes[`${axis}.linecolor`] = read("--line");
  }
  return changes;
};

// A picture has dark text on white, whatever the page's colours, and a legend of the curves that are shown.
const onPaper = (plot) => {
  const data = plot.data.filter((trace) => trace.visible !== "legendonly");
  const { layout } = plot;
  const changed = structuredClone(layout);
  Object.assign(changed, { paper_bgcolor: PAPER, plot_bgcolor: PAPER, showlegend: data.length > 1, legend: LEGEND });
  changed.font = { ...changed.font, family: PICTURE_FONT, color: ON_PAPER };
  for (const axis of axesOf(layout)) Object.assign(changed[axis], { gridcolor: LINES_ON_PAPER, linecolor: LINES_ON_PAPER });
  return { data, layout: changed };
};

// Open the print dialog, which can save as PDF, for a picture alone on a page of its size; `svg` is its text.
const printPicture = (svg, { width, height }) => {
  const page = document.createElement("div");
  page.className = "picture-page";
  page.innerHTML = svg;
  const sheet = document.createElement("style");
  sheet.textContent = `@page { size: ${width}px ${height}px; margin: 0 }
    .picture-page { display: none }
    @media print {
      html, body { margin: 0 !important; padding: 0 !important; background: ${PAPER} !important }
      body > :not(.picture-page) { display: none !important }
      body > .picture-page { display: block; height: ${height}px; overflow: hidden }
    }`;
  document.body.append(sheet, page);
  window.addEventListener("afterprint", () => [sheet, page].forEach((one) => one.remove()), { once: true });
  window.print();
};

const save = async (plot, format) => {
  if (format === "pdf") {
    const svg = await window.Plotly.toImage(onPaper(plot), { format: "svg", ...SIZE, imageDataOnly: true });
    printPicture(svg, SIZE);
    return;
  }
  const filename = plot.getAttribute("aria-label").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  await window.Plotly.downloadImage(onPaper(plot), { format, ...SIZE, scale: format === "png" ? 2 : 1, filename });
};

// Nothing that is shown leaves the page: no button sends a figure to a server.
const CONFIG = {
  responsive: true,
  displaylogo: false,
  showSendToCloud: false,
  modeBarButtonsToRemove: ["lasso2d", "select2d", "toImage"],
};

const PDF_HINT = "Opens the print dialog, which saves as PDF";

const shape = (tag, attributes) => {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};

const sample = (trace) => {
  const style = trace.line || {};
  const color = style.color || trace.marker?.color || read("--mute");
  const svg = shape("svg", { width: 26, height: 12, "aria-hidden": "true" });
  const line = { x1: 0, y1: 6, x2: 26, y2: 6, stroke: color, "stroke-width": 2.5, "stroke-dasharray": DASHES[style.dash] || "" };
  const bar = { x: 7, y: 0, width: 12, height: 12, rx: 2, fill: color };
  svg.append(trace.type === "bar" ? shape("rect", bar) : shape("line", line));
  return svg;
};

const entry = (plot, trace, index) => {
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("aria-pressed", String(trace.visible !== "legendonly"));
  button.title = "Show or hide";
  button.append(sample(trace), trace.name);
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(shown));
    window.Plotly.restyle(plot, { visible: shown ? true : "legendonly" }, [index]);
  });
  return button;
};

const addSaving = (plot) => {
  const list = document.createElement("div");
  list.className = "saving";
  const [svg, png, pdf] = ["svg", "png", "pdf"].map((format) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = format.toUpperCase();
    button.setAttribute("aria-label", `Download as ${button.textContent}: ${plot.getAttribute("aria-label")}`);
    button.addEventListener("click", () => save(plot, format));
    return button;
  });
  pdf.title = PDF_HINT;
  list.append("Download as ", svg, " · ", png, " · ", pdf);
  plot.after(list);
};

const addLegend = (plot, traces) => {
  const list = document.createElement("div");
  list.className = "legend";
  list.append(...traces.flatMap((trace, index) => (trace.name ? [entry(plot, trace, index)] : [])));
  if (list.children.length) plot.after(list);
};

// A click on a heat map tells the page which cell it was on.
const tellCell = (plot) =>
  plot.on("plotly_click", ({ points: [point] }) => {
    if (point.data.type !== "heatmap") return;
    const detail = { x: point.x, y: point.y };
    plot.dispatchEvent(new CustomEvent("figure-cell", { bubbles: true, detail }));
  });

const draw = async (plot, config) => {
  const { data, layout } = JSON.parse(plot.dataset.figure);
  delete layout.height;
  addSaving(plot);
  addLegend(plot, data);
  await window.Plotly.newPlot(plot, data, layout, config);
  drawn.add(plot);
  tellCell(plot);
  await window.Plotly.relayout(plot, look(layout));
};

const forget = () => {
  for (const plot of [...drawn].filter((plot) => !plot.isConnected)) {
    drawn.delete(plot);
    window.Plotly.purge(plot);
  }
};

const claim = (plot) => (plot.dataset.drawn = "1");

/** Draw the figures below `root` that are not drawn yet; resolves once they are. */
export const drawFigures = (root, options = {}) => {
  forget();
  const plots = [...root.querySelectorAll(".plot:not([data-drawn])")];
  plots.forEach(claim);
  return Promise.all(plots.map((plot) => draw(plot, { ...CONFIG, ...options })));
};

/** Draw each figure when it comes near the window. */
export const drawWhenNear = (root, options = {}) => {
  forget();
  const near = (entries, observer) => {
    for (const { target } of entries.filter((one) => one.isIntersecting)) {
      observer.unobserve(target);
      draw(target, { ...CONFIG, ...options });
    }
  };
  const observer = new IntersectionObserver(near, { rootMargin: "500px" });
  for (const plot of root.querySelectorAll(".plot:not([data-drawn])")) {
    claim(plot);
    observer.observe(plot);
  }
};

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const plot of drawn) window.Plotly.relayout(plot, look(plot.layout));
});
