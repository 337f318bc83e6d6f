// Pictures to take away of a drawing or a table of the page, in the colours that it has on white: as an SVG file, which
// looks the same without the page's styles, and by the browser's own print dialog as PDF.
import { drawn, element } from "../shared/dom.js";
import { PICTURE_FONT, printPicture } from "./figures.js";

const LOOKS = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linejoin",
  "paint-order",
  "opacity",
  "font-size",
  "font-weight",
  "font-variant-numeric",
];

// Mixed colours are given as `color(srgb 0.1 0.2 0.3)`, which few programs but browsers read.
const plain = (value) =>
  value.replace(/color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)(?: \/ [\d.]+)?\)/g, (_, ...parts) => {
    const bytes = parts.slice(0, 3).map((part) => Math.round(255 * Number(part)));
    return `rgb(${bytes.join(", ")})`;
  });

const keepLook = (node) => {
  const style = getComputedStyle(node);
  const looks = LOOKS.map((name) => `${name}: ${plain(style.getPropertyValue(name))}`);
  node.setAttribute("style", looks.join("; "));
  for (const child of node.children) keepLook(child);
};

const ofDrawing = (holder) => {
  const svg = holder.querySelector("svg");
  keepLook(svg);
  return svg;
};

const isClear = (colour) => colour === "transparent" || /, 0\)$| \/ 0\)$/.test(colour);

// The pixels of a length, or 0 for words such as `auto`.
const pixels = (length) => Number.parseFloat(length) || 0;

// What a cell has around and behind its text: its colour, an outline or a line below, and the marks of its corners.
const behind = (cell, { x, y, width, height }) => {
  const style = getComputedStyle(cell);
  const [before, after] = ["::before", "::after"].map((part) => getComputedStyle(cell, part));
  const shapes = [];
  if (!isClear(style.backgroundColor)) {
    shapes.push(drawn("rect", { x, y, width, height, rx: pixels(style.borderTopLeftRadius), fill: plain(style.backgroundColor) }));
  }
  const [, shadow, spread] = /^(.*?) 0px 0px 0px ([\d.]+)px inset$/.exec(style.boxShadow) ?? [];
  const dashed = style.outlineStyle === "dashed";
  const stroke = dashed ? style.outlineColor : shadow;
  const thick = dashed ? pixels(style.outlineWidth) : pixels(spread);
  if (stroke && !isClear(stroke)) {
    const inner = { x: x + thick / 2, y: y + thick / 2, width: width - thick, height: height - thick };
    shapes.push(drawn("rect", { ...inner, fill: "none", stroke: plain(stroke), "stroke-width": thick, ...(dashed && { "stroke-dasharray": "3 3" }) }));
  }
  const line = pixels(style.borderBottomWidth);
  if (line) shapes.push(drawn("rect", { x, y: y + height - line, width, height: line, fill: plain(style.borderBottomColor) }));
  if (before.content !== "none") {
    const side = pixels(before.backgroundSize);
    shapes.push(drawn("path", { d: `M${x} ${y}h${side}l${-side} ${side}z`, fill: plain(style.color) }));
  }
  if (after.content !== "none" && pixels(after.right) > 0) {
    const radius = pixels(after.width) / 2;
    const centre = { cx: x + width - pixels(after.right) - radius, cy: y + height - pixels(after.bottom) - radius };
    shapes.push(drawn("circle", { ...centre, r: radius - 1, fill: plain(after.backgroundColor), stroke: plain(after.borderTopColor), "stroke-width": 2 }));
  } else if (after.content !== "none") {
    const side = 2 * pixels(after.borderTopWidth);
    shapes.push(drawn("path", { d: `M${x + width - side} ${y}h${side}v${side}z`, fill: plain(after.borderTopColor) }));
  }
  return shapes;
};

// The words of a cell, each with its box.
const wordsOf = (cell) => {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const range = document.createRange();
    for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const [box] = range.getClientRects();
      if (box?.width) found.push({ word, box, parent: node.parentElement });
    }
  }
  return found;
};

// The lines of a cell's text, each centred where it stands, so that another font moves nothing. What the page cuts off
// is cut off.
const texts = (cell, origin) => {
  const lines = [];
  for (const { word, box, parent } of wordsOf(cell)) {
    const last = lines.at(-1);
    if (last && Math.abs(last.top - box.top) < 2) Object.assign(last, { text: `${last.text} ${word}`, right: box.right });
    else lines.push({ text: word, left: box.left, right: box.right, top: box.top, bottom: box.bottom, parent });
  }
  return lines.flatMap(({ text, left, right, top, bottom, parent }) => {
    const style = getComputedStyle(parent);
    const size = pixels(style.fontSize);
    if (!size || isClear(style.color)) return [];
    const edge = style.overflowX === "hidden" ? Math.min(right, parent.getBoundingClientRect().right) : right;
    const shown = Math.floor((text.length * (edge - left)) / (right - left));
    const place = { x: (left + edge) / 2 - origin.left, y: (top + bottom) / 2 - origin.top + 0.35 * size };
    const look = { "font-size": size, "font-weight": style.fontWeight, fill: plain(style.color) };
    const words = shown < text.length ? `${text.slice(0, shown - 1)}…` : text;
    return [drawn("text", { ...place, ...look, "text-anchor": "middle" }, words)];
  });
};

const ofTable = (holder) => {
  const table = holder.querySelector("table");
  const origin = table.getBoundingClientRect();
  const cells = [...table.querySelectorAll("th, td")].flatMap((cell) => {
    const box = cell.getBoundingClientRect();
    const place = { x: box.left - origin.left, y: box.top - origin.top, width: box.width, height: box.height };
    return [...behind(cell, place), ...texts(cell, origin)];
  });
  return drawn("svg", { viewBox: `0 0 ${Math.ceil(origin.width)} ${Math.ceil(origin.height)}` }, ...cells);
};

const picture = (holder) => {
  const paper = holder.cloneNode(true);
  paper.classList.add("on-paper");
  // Laid out as what it copies, whose place it does not change.
  Object.assign(paper.style, { position: "absolute", width: `${holder.offsetWidth}px`, fontFamily: PICTURE_FONT });
  holder.after(paper);
  const svg = paper.querySelector("table") ? ofTable(paper) : ofDrawing(paper);
  paper.remove();
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  const attributes = { xmlns: "http://www.w3.org/2000/svg", width, height, "font-family": PICTURE_FONT };
  for (const [key, value] of Object.entries(attributes)) svg.setAttribute(key, value);
  return { text: svg.outerHTML, width, height };
};

const download = ({ text }, name) => {
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  element("a", { href: address, download: `${name}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
};

// Buttons stand in a line that names what they take away, by a selector, and the file.
document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("button[data-picture]");
  if (!button) return;
  const { of, name } = button.parentElement.dataset;
  const made = picture(document.querySelector(of));
  if (button.dataset.picture === "pdf") printPicture(made.text, made);
  else download(made, name);
});
