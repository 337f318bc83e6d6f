// The part of a page that shows running work, refreshed until nothing is running.
import { patiently, say } from "../shared/connection.js";
import { element, html, showNotice } from "../shared/dom.js";
import { cardOf, remember, update } from "./in_place.js";

const EVERY = 1000;

/** A message in the card of a button (`data-card`); without a card, in the `.said` of the page. */
export class CardNotice {
  constructor(room) {
    Object.assign(this, { room, card: "", message: "" });
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

  /** Show the message, also after the card was drawn again. */
  put() {
    const card = cardOf(this.card);
    if (this.message && this.place()?.textContent === this.message) return;
    for (const old of this.room()?.querySelectorAll("[data-card] .said") ?? []) old.remove();
    if (card && this.message) (card.querySelector("th") ?? card).append(element("div", { class: "said" }));
    if (this.place()) showNotice(this.place(), this.message);
  }
}

/** Refreshes `.state` in the element that `room` returns from `address`; calls `onIdle` when nothing runs any more. */
export class LivePart {
  constructor(room, address, onIdle = () => {}) {
    Object.assign(this, { room, address, onIdle, shown: "", timer: 0, notice: new CardNotice(room) });
  }

  tell(button, message) {
    this.notice.tell(button, message);
  }

  // What was pressed stays where it is on the screen.
  replace(state, text) {
    const top = cardOf(this.notice.card)?.getBoundingClientRect().top;
    update(state, html(text));
    const card = cardOf(this.notice.card);
    const stay = () => card?.isConnected && top !== undefined && scrollBy({ top: card.getBoundingClientRect().top - top, behavior: "instant" });
    // The browser itself holds the place of what it shows, and a table is sorted in the next frame.
    requestAnimationFrame(() => requestAnimationFrame(stay));
    if (card && this.notice.message) this.notice.put();
  }

  async ask() {
    const state = this.room()?.querySelector(".state");
    if (!state) return false;
    const response = await patiently(this.address, {}, say);
    say("");
    if (!response.ok) return false;
    const text = await response.text();
    if (text !== this.shown) {
      this.shown = text;
      this.replace(state, text);
    }
    return Boolean(state.querySelector("[data-working]"));
  }

  // Refreshes once more even if nothing is running, since a job may have come and gone between two requests.
  follow() {
    if (this.timer) return;
    const again = async () => {
      const more = document.hidden || (await this.ask());
      this.timer = more && this.room() ? setTimeout(again, EVERY) : 0;
      if (!more) this.onIdle();
    };
    this.timer = setTimeout(again, 200);
  }

  /** For a page that was just drawn, and that scripts have not changed yet. */
  start() {
    this.shown = "";
    const state = this.room().querySelector(".state");
    if (state) remember(state);
    if (this.room().querySelector("[data-working]")) this.follow();
  }
}
