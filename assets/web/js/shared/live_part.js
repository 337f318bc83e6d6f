// The part of a page that shows running work, refreshed until nothing is running.
import { patiently, say } from "./connection.js";
import { html } from "./dom.js";

const EVERY = 1000;

const keyOf = (node) => node.dataset?.fetch ?? node.dataset?.post?.replace(/\w+$/, "") ?? "";

/** Refreshes `.state` in the element that `room` returns from `address`. */
export class LivePart {
  constructor(room, address) {
    Object.assign(this, { room, address, shown: "", timer: 0 });
  }

  // Open details stay open, and a button keeps the focus.
  async ask() {
    const state = this.room()?.querySelector(".state");
    if (!state) return false;
    const response = await patiently(this.address, {}, say);
    say("");
    if (!response.ok) return false;
    const text = await response.text();
    if (text !== this.shown) {
      this.shown = text;
      const open = new Map([...state.querySelectorAll("details")].map((one, index) => [one.dataset.key ?? index, one.open]));
      const focused = state.contains(document.activeElement) ? keyOf(document.activeElement) : "";
      state.replaceChildren(html(text));
      state.querySelectorAll("details").forEach((one, index) => (one.open = open.get(one.dataset.key ?? index) ?? false));
      if (focused) [...state.querySelectorAll("button")].find((one) => keyOf(one) === focused)?.focus();
    }
    return Boolean(state.querySelector("[data-working]"));
  }

  // Refreshes once more even if nothing is running, since a job may have come and gone between two requests.
  follow() {
    if (this.timer) return;
    const again = async () => {
      const more = document.hidden || (await this.ask());
      this.timer = more && this.room() ? setTimeout(again, EVERY) : 0;
    };
    this.timer = setTimeout(again, 200);
  }

  /** For a page that was just drawn. */
  start() {
    this.shown = "";
    if (this.room().querySelector("[data-working]")) this.follow();
  }
}
