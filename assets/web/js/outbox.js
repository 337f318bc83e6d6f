// Events on their way to the server: one at a time and in order, each until it is answered, always under its own key,
// so that one which arrived though its answer was lost is not done twice.
import { failure, post } from "./requests.js";
import { changeEvent, dropEvent, keepEvent, keptEvents } from "./unsent.js";

const PATIENCE = 20_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;

// Statuses that say nothing of the event itself: it may be stored later.
const comesLater = (status) => status >= 500 || status === 408 || status === 429;
const isTurn = ({ kind }) => kind === "undo" || kind === "redo";
const path = (slot, event) => `/relabel/slots/${slot}/${isTurn(event) ? event.kind : "events"}`;
const body = ({ at, ...event }) => (isTurn(event) ? { key: event.key } : event);

export class Outbox {
  /**
   * `person` and `slot` are ids. `answered(event, answer)` is called when an event is stored; `refused(event, status,
   * message)` when it will not be as it is: it stays the first and nothing is sent until `drop`, `resume` or `clear`.
   * `changed()` is called whenever `events` or `away` have changed; `away` says that the server is out of reach.
   */
  constructor(person, slot, { answered, refused, changed = () => {} }) {
    Object.assign(this, { person, slot, answered, refused, changed });
    this.events = keptEvents(person, slot);
    this.away = false;
    this.stopped = false;
    this.busy = false;
    this.pause = FIRST_PAUSE;
    window.addEventListener("online", () => this.hurry());
  }

  add(event) {
    this.events.push(keepEvent(this.person, this.slot, event));
    this.changed();
    this.send();
  }

  /** Forget the event that was refused, and go on with the next. */
  drop() {
    this.events.splice(0, 1).forEach(dropEvent);
    this.resume();
  }

  /** Go on, after each event that waits was amended, such as by the guideline in force. */
  resume(amend = {}) {
    for (const event of this.events) changeEvent(Object.assign(event, amend));
    this.stopped = false;
    this.changed();
    this.send();
  }

  /** Forget everything that waits. */
  clear() {
    this.events.splice(0).forEach(dropEvent);
    this.changed();
  }

  /** Try at once, without the rest of a pause. */
  hurry() {
    this.pause = FIRST_PAUSE;
    clearTimeout(this.timer);
    this.send();
  }

  async send() {
    while (!this.busy && !this.stopped && this.events.length) {
      this.busy = true;
      const arrived = await this.sendFirst();
      this.busy = false;
      if (!arrived) return this.wait();
      this.pause = FIRST_PAUSE;
    }
  }

  // Whether the first event was answered.
  async sendFirst() {
    const event = this.events[0];
    const response = await post(path(this.slot, event), body(event), { signal: AbortSignal.timeout(PATIENCE) });
    if (!response || comesLater(response.status)) return false;
    const answer = response.ok ? await response.json().catch(() => null) : await failure(response);
    if (answer === null) return false;
    this.away = false;
    this.settle(event, response, answer);
    return true;
  }

  settle(event, response, answer) {
    if (response.ok) {
      this.events.shift();
      dropEvent(event);
      this.answered(event, answer);
    } else {
      this.stopped = true;
      this.refused(event, response.status, answer);
    }
    this.changed();
  }

  wait() {
    this.away = true;
    this.changed();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.send(), this.pause);
    this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
  }
}
