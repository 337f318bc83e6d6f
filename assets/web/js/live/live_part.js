// The part of a page that shows running work, refreshed until nothing is running.
import { failure, patiently, post, say } from "../shared/connection.js";
import { element, html, onArrival, showNotice } from "../shared/dom.js";
import { cardOf, remember, update } from "./in_place.js";

/**
 * Refreshes `.state` in the element `selector` of a page from the address that `address` returns, every `pace` milliseconds:
 * forever, or while something in it is `[data-working]`, after which `onIdle` is called. A refusal is shown in the card of the
 * button that was pressed (`data-card`) or, without a card, in the `.said` of the page.
 */
export class LivePart {
  constructor(selector, address, { pace = 1000, isEndless = false, onIdle = () => {} } = {}) {
    Object.assign(this, { selector, address, pace, isEndless, onIdle, shown: "", timer: 0, card: "", message: "" });
    this.asking = Promise.resolve();
    onArrival(selector, () => this.start());
    document.addEventListener("changed", () => this.room() && this.ask());
  }

  room() {
    return document.querySelector(this.selector);
  }

  // For a page that has just been drawn, and that scripts have not changed yet.
  start() {
    this.shown = "";
    const state = this.room().querySelector(".state");
    if (state) remember(state);
    if (this.isEndless || this.room().querySelector("[data-working]")) this.follow();
  }

  /** Send values for a button, and show the outcome. Returns true if they were accepted. */
  async post(button, address, values) {
    const tell = (message) => this.tell(button, message);
    try {
      await post(address, values, tell);
      tell("");
      return true;
    } catch (error) {
      tell(error.message);
      return false;
    } finally {
      await this.ask();
      this.follow();
    }
  }

  tell(button, message) {
    this.card = button.closest("[data-card]")?.dataset.card ?? this.card;
    this.message = message;
    this.put();
    if (message) this.place()?.scrollIntoView({ block: "nearest" });
  }

  place() {
    return (cardOf(this.card) ?? this.room())?.querySelector(".said");
  }

  // Show the message, even if the card was redrawn.
  put() {
    const card = cardOf(this.card);
    if (this.message && this.place()?.textContent === this.message) return;
    for (const old of this.room()?.querySelectorAll("[data-card] .said") ?? []) old.remove();
    if (card && this.message) (card.querySelector("th") ?? card).append(element("div", { class: "said" }));
    if (this.place()) showNotice(this.place(), this.message);
  }

  // The pressed button stays where it is on the screen.
  replace(state, text) {
    const top = cardOf(this.card)?.getBoundingClientRect().top;
    update(state, html(text));
    const card = cardOf(this.card);
    const stay = () => card?.isConnected && top !== undefined && scrollBy({ top: card.getBoundingClientRect().top - top, behavior: "instant" });
    // The browser itself keeps its scroll position, and a table is sorted in the next frame.
    requestAnimationFrame(() => requestAnimationFrame(stay));
    if (this.message) this.put();
  }

  /** Refresh now, after earlier requests, whose answers may miss what was just done. Returns true if work continues. */
  ask() {
    const ask = () => this.refresh();
    return (this.asking = this.asking.then(ask, ask));
  }

  async refresh() {
    const state = this.room()?.querySelector(".state");
    if (!state) return false;
    const response = await patiently(this.address(), {});
    if (response.status === 401) location.reload();
    say(response.ok ? "" : await failure(response));
    if (!response.ok) return true;
    const text = await response.text();
    if (text !== this.shown) {
      this.shown = text;
      this.replace(state, text);
    }
    return this.isEndless || Boolean(state.querySelector("[data-working]"));
  }

  // Refreshes once more even if nothing is running, since a job may have come and gone between two requests.
  follow() {
    if (this.timer) return;
    const again = async () => {
      const more = document.hidden || (await this.ask().catch(() => true));
      this.timer = more && this.room() ? setTimeout(again, this.pace) : 0;
      if (!more) this.onIdle();
    };
    this.timer = setTimeout(again, 200);
  }
}
