// The steps of a long solution that its page does not hold at first. Each has an empty item with its number and marks, and
// arrives, with its neighbours, when it comes near the window or is gone to. What holds an item, holds it still.
//
// For a search in the page, and for printing by key, all of them are fetched.
import { patiently } from "../shared/connection.js";
import { html, onChange } from "../shared/dom.js";
import { readKey } from "../shared/keys.js";
import { drawMaths } from "../shared/maths.js";

/** The event of a list whose items, its detail, have arrived. */
export const ARRIVED = "stepsarrived";

// The steps asked for at once, those asked for where all are wanted, and how near the window they are.
const AT_ONCE = 50;
const OF_ALL = 500;
const NEAR = "1200px 0px";

/** True if the content of a step's item is there. */
export const isThere = (item) => !item.classList.contains("later");

const drawn = (text) => {
  const content = html(text);
  drawMaths(content);
  return content;
};

// What belongs to the item rather than to its content stays, such as a fold.
const fill = (item, content) => {
  for (const { name, value } of content.attributes) if (name !== "class") item.setAttribute(name, value);
  item.classList.remove("later");
  if (content.className) item.classList.add(...content.classList);
  delete item.dataset.marks;
  for (const child of [...item.children]) if (!child.matches(".fold")) child.remove();
  item.prepend(...content.childNodes);
};

class LaterSteps {
  constructor(list) {
    this.list = list;
    this.items = [...list.children];
    this.near = new Set();
    this.isAsking = false;
    this.coming = new Map();
    this.observer = new IntersectionObserver((changes) => this.see(changes), { rootMargin: NEAR });
    for (const item of this.items) if (!isThere(item)) this.observer.observe(item);
    if (list.dataset.marksOf) this.fetchMarks();
  }

  see(changes) {
    for (const { target, isIntersecting } of changes) {
      if (isIntersecting && !isThere(target)) this.near.add(target);
      else this.near.delete(target);
    }
    this.ask();
  }

  want(item) {
    this.near.add(item);
    this.ask();
  }

  // One request at a time, for what came near last: somebody who scrolls on does not wait for what was passed.
  async ask() {
    if (this.isAsking) return;
    this.isAsking = true;
    while (this.near.size && this.list.isConnected) {
      if (!(await this.fetchAround([...this.near].at(-1)))) break;
    }
    this.isAsking = false;
  }

  /** Fetch a step with its neighbours, once for all who ask for them meanwhile. False if they do not come. */
  fetchAround(item) {
    const start = Math.floor(this.items.indexOf(item) / AT_ONCE) * AT_ONCE;
    if (!this.coming.has(start)) this.coming.set(start, this.fetch(start, start + AT_ONCE).finally(() => this.coming.delete(start)));
    return this.coming.get(start);
  }

  /** Fetch steps, counted from 0, up to `end`. False if they do not come. */
  async fetch(start, end) {
    const response = await patiently(`${this.list.dataset.more}&from=${start}&to=${end}`);
    if (!response.ok) return false;
    const contents = [...html(await response.text()).children];
    const arrived = [];
    contents.forEach((content, place) => {
      const item = this.items[start + place];
      this.near.delete(item);
      this.observer.unobserve(item);
      if (isThere(item)) return;
      fill(item, content);
      drawMaths(item);
      arrived.push(item);
    });
    this.list.dispatchEvent(new CustomEvent(ARRIVED, { bubbles: true, detail: arrived }));
    return contents.length > 0;
  }

  async fetchAll() {
    for (let start = 0; start < this.items.length; start += OF_ALL) {
      if (this.items.slice(start, start + OF_ALL).every(isThere)) continue;
      if (!(await this.fetch(start, start + OF_ALL))) return;
    }
  }

  // What takes the server longer than the first steps, such as the equations of all.
  async fetchMarks() {
    const response = await patiently(this.list.dataset.marksOf);
    if (!response.ok) return;
    const { marks, conclusion } = await response.json();
    document.querySelector(".conclusion.checking")?.replaceWith(drawn(conclusion));
    this.items.forEach((item, step) => !isThere(item) && (item.dataset.marks = marks[step]));
  }
}

const current = new Map();

const of = (list) => {
  if (!current.has(list)) current.set(list, new LaterSteps(list));
  return current.get(list);
};

/** Have a step's item arrive, wherever it is. */
export const want = (item) => isThere(item) || of(item.parentElement).want(item);

/** Have a step's item arrive, and wait for that. False if it does not come. */
export const bring = async (item) => isThere(item) || ((await of(item.parentElement).fetchAround(item)) && isThere(item));

onChange(() => {
  for (const list of current.keys()) if (!list.isConnected) current.delete(list);
  for (const list of document.querySelectorAll("ol.steps[data-more]")) of(list);
});

const fetchAll = () => Promise.all([...current.values()].map((one) => one.fetchAll()));

document.addEventListener("keydown", async (event) => {
  const key = readKey(event);
  if (["Ctrl+f", "F3", "Shift+F3"].includes(key)) fetchAll();
  if (key !== "Ctrl+p" || ![...current.values()].some((one) => !one.items.every(isThere))) return;
  event.preventDefault();
  await fetchAll();
  window.print();
});
