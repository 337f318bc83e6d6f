// Saving a drawing of the page as an SVG file that looks the same without the page's styles.
import { element } from "../shared/dom.js";

const LOOKS = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linejoin",
  "paint-order",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "font-variant-numeric",
];

const keepLook = (node) => {
  const style = getComputedStyle(node);
  const looks = LOOKS.map((name) => `${name}: ${style.getPropertyValue(name)}`);
  node.setAttribute("style", looks.join("; "));
  for (const child of node.children) keepLook(child);
};

/** Download the drawing in `holder` as NAME.svg, in the colours that it has on white. */
export const saveDrawing = (holder, name) => {
  const paper = holder.cloneNode(true);
  paper.classList.add("on-paper");
  holder.after(paper);
  const svg = paper.querySelector("svg");
  keepLook(svg);
  paper.remove();
  const [, , width, height] = svg.getAttribute("viewBox").split(" ");
  for (const [key, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", width, height })) svg.setAttribute(key, value);
  const address = URL.createObjectURL(new Blob([svg.outerHTML], { type: "image/svg+xml" }));
  element("a", { href: address, download: `${name}.svg` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
};
