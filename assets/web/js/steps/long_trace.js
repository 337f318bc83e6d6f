// Reading a long solution: a strip of all marks that shows which steps are in view and leads to each, and keys from flag to
// flag.
//
// The server leaves room for the strip, with the names of its lanes; marks are read from the list of steps, so that they follow
// thresholds, labels, and what is revealed. A flag is a step that an evaluator or gold calls wrong, or whose equation fails.
import { announce, drawn, element, onChange, setText } from "../shared/dom.js";
import { readKey, register } from "../shared/keys.js";
import { drawMaths } from "../shared/maths.js";

const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

const WRONG = "✕";
const REDUNDANT = "○";
const WORDS = { [WRONG]: "not valid", [REDUNDANT]: "redundant" };
// The heights of a lane and of the names below, the width of a step that has room for its mark, the smallest width of a mark,
// and the room that a name takes, all in pixels.
const LANE = 11;
const NAMES = 14;
const ROOMY = 13;
const LEAST = 3;
const NAME = 44;

let current = null;

// The worst of the marks of a step's sub-steps in a lane.
const worst = (marks) => [WRONG, REDUNDANT].find((mark) => marks.includes(mark)) ?? "";

const goldOf = (item) => (item.classList.contains("wrong") ? WRONG : item.querySelector(".g")?.textContent.startsWith(REDUNDANT) ? REDUNDANT : "");
const KINDS = {
  equations: (item) => (item.querySelector("small.fails") ? WRONG : ""),
  gold: goldOf,
};

class LongTrace {
  constructor(room) {
    this.room = room;
    this.list = room.parentElement.querySelector("ol.steps");
    this.lanes = JSON.parse(room.dataset.lanes);
    this.columns = Number(room.dataset.columns);
    this.address = location.href;
    [this.at, this.top, this.bottom] = [-1, 0, 0];
    this.collect();
    this.shape();
    this.life = new AbortController();
    const { signal } = this.life;
    const soon = () => (this.frame ??= requestAnimationFrame(() => this.follow()));
    window.addEventListener("scroll", soon, { passive: true, signal });
    // Only changes of marks in the list count; there are many changes of formulas.
    this.observer = new MutationObserver((changes) => changes.some(({ target }) => target.matches("li, .mark, ol")) && this.refresh());
    this.observer.observe(this.list, { childList: true, subtree: true, attributeFilter: ["class"] });
    // It is also first drawn when its width is known, since measuring it would lay out the page once more.
    this.resized = new ResizeObserver(([{ contentRect }]) => this.fit(Math.round(contentRect.width)));
    this.resized.observe(this.picture);
    this.refresh();
  }

  collect() {
    this.items = [...this.list.children];
    this.names = this.items.map((item) => item.querySelector(".pick, b").textContent.trim());
  }

  close() {
    this.life.abort();
    this.observer.disconnect();
    this.resized.disconnect();
  }

  shape() {
    const button = (act, label, key) => {
      const shown = element("kbd", { "aria-hidden": "true" }, key);
      return element("button", { type: "button", class: "button", "data-act": act, "aria-keyshortcuts": key === "N" ? "Shift+N" : key }, label, shown);
    };
    this.picture = element("div", { class: "lanes", role: "slider", tabindex: "0", "aria-label": "Place in the solution", "aria-valuemin": 1 });
    // Reserved so that nothing below moves when it is drawn.
    this.picture.style.minHeight = `${LANE * this.lanes.length + NAMES}px`;
    this.place = element("span", { class: "place" });
    this.acts = [button("first", "First error", "f"), button("previous", "Previous flag", "N"), button("next", "Next flag", "n")];
    const names = element("div", { class: "names", "aria-hidden": "true" }, ...this.lanes.map((name) => element("span", {}, name)));
    this.room.replaceChildren(names, this.picture, element("div", { class: "ways" }, this.place, ...this.acts));
    this.picture.addEventListener("keydown", (event) => this.slide(event));
    this.picture.addEventListener("pointerdown", (event) => this.grab(event));
    this.room.addEventListener("click", ({ target }) => this.act(target.closest("button[data-act]")?.dataset.act));
  }

  act(name) {
    const acts = { first: () => this.first(), next: () => this.next(1), previous: () => this.next(-1) };
    acts[name]?.();
  }

  /** Read all marks again, and show them if they have changed. */
  refresh() {
    if (this.list.children.length !== this.items.length) this.collect();
    const marks = this.items.map((item) => this.marksOf(item));
    const read = marks.map((one) => one.map((mark) => mark || " ").join("")).join("\n");
    if (read === this.read) return;
    Object.assign(this, { read, marks });
    this.flags = marks.flatMap((one, step) => (one.includes(WRONG) ? [step] : []));
    for (const act of this.acts) act.disabled = !this.flags.length;
    this.draw();
  }

  // What is not revealed yet has no marks.
  marksOf(item) {
    if (item.classList.contains("unrevealed")) return this.lanes.map(() => "");
    const found = [...item.querySelectorAll(".c .mark")].map((mark) => mark.textContent);
    return this.lanes.map((name, lane) =>
      lane < this.columns ? worst(found.filter((_, place) => place % this.columns === lane)) : KINDS[name](item),
    );
  }

  fit(width) {
    if (width === this.width) return;
    this.width = width;
    this.draw();
  }

  draw() {
    const { width } = this;
    if (!width) return;
    const view = this.view();
    const step = width / this.items.length;
    const height = LANE * this.lanes.length;
    const x = (place) => place * step;
    const svg = drawn("svg", { width, height: height + NAMES, "aria-hidden": "true" });
    this.lanes.forEach((_, lane) => {
      svg.append(drawn("line", { x1: 0, x2: width, y1: (lane + 0.5) * LANE, y2: (lane + 0.5) * LANE }));
      for (const [mark, kind] of [[REDUNDANT, "redundant"], [WRONG, "wrong"]]) svg.append(...this.lane(lane, mark, kind, step));
    });
    const every = Math.max(1, Math.ceil((step < ROOMY ? NAME : ROOMY) / step));
    this.names.forEach((name, place) => {
      if (place % every === 0 && x(place) <= width - NAME / 4) svg.append(drawn("text", { class: "name", x: x(place) + Math.min(step, ROOMY) / 2, y: height + 11 }, name));
    });
    this.seen = drawn("rect", { class: "seen", y: 0.75, height: height - 1.5, rx: 2 });
    svg.append(this.seen);
    this.picture.replaceChildren(svg);
    this.showView(view);
  }

  lane(lane, mark, kind, step) {
    const places = this.marks.flatMap((one, place) => (one[lane] === mark ? [place] : []));
    const middle = (lane + 0.5) * LANE;
    if (step >= ROOMY) return places.map((place) => drawn("text", { class: kind, x: (place + 0.5) * step, y: middle + 4 }, mark));
    const [width, height] = [Math.max(LEAST, step), kind === "wrong" ? LANE - 2 : 4];
    const path = places.map((place) => `M${(place * step).toFixed(1)} ${middle - height / 2}h${width.toFixed(1)}v${height}h-${width.toFixed(1)}z`);
    return places.length ? [drawn("path", { class: kind, d: path.join("") })] : [];
  }

  // The first step whose lower edge is below a height of the window.
  below(height) {
    let [low, high] = [0, this.items.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.items[middle].getBoundingClientRect().bottom > height) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Show which steps are in view. */
  follow() {
    this.frame = null;
    if (this.seen && this.room.isConnected) this.showView(this.view());
  }

  // The first and the last step in view, and whether all are below the window. They are read before the page is changed,
  // which would have to be laid out again for them.
  view() {
    const first = this.below(this.room.getBoundingClientRect().bottom + 4);
    return [first, this.below(innerHeight - 4), this.items[0].getBoundingClientRect().top > innerHeight];
  }

  showView([first, last, isOutside]) {
    Object.assign(this, { top: first, bottom: last });
    const step = this.width / this.items.length;
    this.seen.setAttribute("x", (first * step).toFixed(1));
    this.seen.setAttribute("width", Math.max(LEAST, (last - first + 1) * step).toFixed(1));
    const range = first === last ? `step ${this.names[first]}` : `steps ${this.names[first]} to ${this.names[last]}`;
    setText(this.place, `${isOutside ? plural(Number.parseInt(this.names.at(-1)), "step") : `${range} of ${this.names.at(-1)}`} · ${plural(this.flags.length, "flag")}`);
    const here = this.isInView(this.at) ? this.at : first;
    this.picture.setAttribute("aria-valuemax", this.items.length);
    this.picture.setAttribute("aria-valuenow", here + 1);
    this.picture.setAttribute("aria-valuetext", this.words(here));
  }

  isInView(step) {
    return step >= this.top && step <= this.bottom;
  }

  words(step) {
    const found = this.lanes.flatMap((name, lane) => {
      const mark = this.marks[step][lane];
      if (!mark) return [];
      return [name === "equations" ? "an equation fails" : `${name} ${WORDS[mark]}`];
    });
    return `Step ${this.names[step]}${found.length ? `: ${found.join(", ")}` : ""}`;
  }

  /** Go to a step, which then has the focus. */
  go(step) {
    const item = this.items[step];
    this.at = step;
    drawMaths(item);
    if (!item.hasAttribute("tabindex")) item.tabIndex = -1;
    item.focus({ preventScroll: true });
    // Until content has been laid out, its height is a guess.
    item.scrollIntoView({ block: "center", behavior: "instant" });
    item.scrollIntoView({ block: "center", behavior: "instant" });
    announce(this.words(step));
    this.follow();
  }

  /** Go to the next flag, or the one before. */
  next(by) {
    const isHere = this.isInView(this.at);
    const from = isHere ? this.at : by > 0 ? this.top - 1 : this.top;
    const found = by > 0 ? this.flags.find((step) => step > from) : this.flags.findLast((step) => step < from);
    if (found !== undefined) this.go(found);
    else announce(by > 0 ? "There is no flag further down." : "There is no flag further up.");
  }

  /** Go to the first step that gold calls wrong or, without gold, to the first flag. */
  first() {
    const gold = this.lanes.indexOf("gold");
    const found = this.marks.findIndex((one) => one[gold] === WRONG);
    if (found >= 0) this.go(found);
    else if (this.flags.length) this.go(this.flags[0]);
  }

  slide(event) {
    const here = this.isInView(this.at) ? this.at : this.top;
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -here, End: this.items.length }[readKey(event)];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.show(here + by);
  }

  // Bring a step into view; the focus stays on the strip.
  show(step) {
    this.at = Math.min(Math.max(step, 0), this.items.length - 1);
    this.items[this.at].scrollIntoView({ block: "center", behavior: "instant" });
    this.follow();
  }

  grab(event) {
    if (event.button) return;
    const move = ({ clientX }) => {
      const { left, width } = this.picture.getBoundingClientRect();
      this.show(Math.floor(((clientX - left) / width) * this.items.length));
    };
    this.picture.setPointerCapture(event.pointerId);
    this.picture.onpointermove = move;
    this.picture.onlostpointercapture = () => (this.picture.onpointermove = null);
    move(event);
  }
}

const isHere = () => current?.room.isConnected && !current.room.closest(".hides");

onChange(() => {
  if (current?.room.isConnected) return;
  current?.close();
  const room = document.querySelector("main .overview");
  const before = current;
  current = room && new LongTrace(room);
  // The page may be redrawn because its bars have arrived; whoever went to a step stays there.
  if (current && before?.address === current.address && before.isInView(before.at)) current.go(before.at);
});

register({ key: "n", label: "next step with a flag", when: isHere, repeats: true, run: () => current.next(1) });
register({ key: "N", label: "previous step with a flag", when: isHere, repeats: true, run: () => current.next(-1) });
register({ key: "f", label: "first error", when: isHere, run: () => current.first() });
