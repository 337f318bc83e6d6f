// The rail of a long solution: a button for each of its sections, with the number of flags and of failing equations in it,
// that opens or closes the section. One button is reached by Tab, the others from it by arrow keys.
import { element, setText } from "../shared/dom.js";
import { readKey } from "../shared/keys.js";

export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

const MOVES = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };

export class SectionRail {
  /** Sections have the indices of their first and last step and a kind; `toggle` opens or closes one. */
  constructor(sections, names, toggle) {
    this.ranges = sections.map(({ from, to }) => (from === to ? names[from] : `${names[from]}–${names[to]}`));
    this.kinds = sections.map(({ kind }) => kind);
    this.buttons = sections.map(({ kind }, place) => this.button(kind, place));
    this.bar = element("div", { class: "rail", role: "toolbar", "aria-label": "Sections" }, ...this.buttons);
    this.bar.addEventListener("click", ({ target }) => {
      const place = this.buttons.indexOf(target.closest("button"));
      if (place < 0) return;
      this.reach(place);
      toggle(sections[place]);
    });
    this.bar.addEventListener("keydown", (event) => this.move(event));
    this.reach(0);
  }

  button(kind, place) {
    const counts = element("span", { class: "counts" });
    return element("button", { type: "button", "data-kind": kind }, kind, element("span", { class: "range" }, this.ranges[place]), counts);
  }

  /** Show the numbers of flags and failing equations of each section, and whether it is open. */
  show(sections) {
    sections.forEach(({ flags, fails, isOpen }, place) => {
      const button = this.buttons[place];
      const counts = [flags && plural(flags, "flag"), fails && plural(fails, "failing equation")].filter(Boolean);
      const steps = this.ranges[place].includes("–") ? "steps" : "step";
      const label = [`${this.kinds[place]}, ${steps} ${this.ranges[place].replace("–", " to ")}`, ...counts].join(", ");
      setText(button.querySelector(".counts"), `${flags ? `✕${flags}` : ""}${fails ? ` ≠${fails}` : ""}`);
      button.setAttribute("aria-label", label);
      button.title = label;
      button.setAttribute("aria-expanded", isOpen);
    });
  }

  /** Mark the section in view, and bring its button into view unless somebody is using the rail. */
  setPlace(place) {
    if (place === this.place || place < 0) return;
    this.place = place;
    this.buttons.forEach((button, i) => (i === place ? button.setAttribute("aria-current", "true") : button.removeAttribute("aria-current")));
    if (this.bar.matches(":hover, :focus-within")) return;
    this.reach(place);
    const { offsetLeft, offsetWidth } = this.buttons[place];
    this.bar.scrollLeft = offsetLeft + offsetWidth / 2 - this.bar.clientWidth / 2;
  }

  // The one button in the order of Tab.
  reach(place) {
    this.reached = place;
    this.buttons.forEach((button, i) => (button.tabIndex = i === place ? 0 : -1));
  }

  move(event) {
    const by = MOVES[readKey(event)];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.reach(Math.min(Math.max(this.reached + by, 0), this.buttons.length - 1));
    this.buttons[this.reached].focus();
  }
}
