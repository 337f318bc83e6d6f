// Events on their way to the server: stored in the browser, and sent one at a time in order, each until it is answered.
//
// Each event has its own key, so that it is not carried out twice if its answer was lost. After a reload, a page finds
// its unsent events and unfinished texts again.
import { failure } from "../shared/connection.js";
import { quietly } from "../shared/storage.js";

export const AWAY = "The server does not answer. What you typed stays here; try again.";

/** POST values as JSON; null if the server does not answer. */
export const post = (url, values, options = {}, more = {}) => {
  const headers = { "content-type": "application/json", ...more };
  return fetch(url, { method: "POST", headers, body: JSON.stringify(values), ...options }).catch(() => null);
};

/** The request header for only the content of a page. */
export const PART = { "stepsight-part": "1" };

const EVENTS = "stepsight.unsent";
const TEXTS = "stepsight.typed";
let count = 0;

const keysBelow = (prefix) => quietly(() => Object.keys(localStorage).filter((key) => key.startsWith(prefix)), []).sort();
const padded = (number) => String(number).padStart(15, "0");

/** A unique key for an event. */
export const freshKey = () => {
  if (crypto.randomUUID) return crypto.randomUUID();
  // Available only over https or from this machine.
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};

// Store an event of a person at a slot under `at` of the result. Each has its own entry, or two tabs would lose some.
const keepEvent = (person, slot, event) => {
  const at = `${EVENTS}.${person}.${slot}.${padded(Date.now())}.${padded(count++)}.${event.key}`;
  quietly(() => localStorage.setItem(at, JSON.stringify(event)));
  return { ...event, at };
};

const changeEvent = (event) => quietly(() => event.at in localStorage && localStorage.setItem(event.at, JSON.stringify(event)));
const dropEvent = ({ at }) => quietly(() => localStorage.removeItem(at));

const read = (at) => quietly(() => ({ ...JSON.parse(localStorage.getItem(at)), at }), null);

// The stored events of a person at a slot, in order.
const keptEvents = (person, slot) => keysBelow(`${EVENTS}.${person}.${slot}.`).map(read).filter((event) => event?.key);

/** True if an entry of the browser's storage is, or was, an event of a person at a slot. */
export const isEvent = (at, person, slot) => at?.startsWith(`${EVENTS}.${person}.${slot}.`) ?? false;

/** The slots for which a person has stored events. */
export const keptSlots = (person) => [...new Set(keysBelow(`${EVENTS}.${person}.`).map((key) => key.split(".")[3]))];

// After its lease, a slot may go to another person, who may use the same browser.
const textKey = (person, slot, field) => `${TEXTS}.${person}.${slot}.${field}`;

/** Store the text that a person is typing in a field of a slot; null deletes it. */
export const keepText = (person, slot, field, text) => {
  const at = textKey(person, slot, field);
  quietly(() => (text === null ? localStorage.removeItem(at) : localStorage.setItem(at, text)));
};

export const keptText = (person, slot, field) => quietly(() => localStorage.getItem(textKey(person, slot, field)), null);

/** Delete every text of a person at a slot. */
export const dropTexts = (person, slot) => {
  for (const key of keysBelow(textKey(person, slot, ""))) quietly(() => localStorage.removeItem(key));
};

const PATIENCE = 20_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 2000;

// Statuses that are not about the event itself, which may be stored later.
const comesLater = (status) => status >= 500 || status === 408 || status === 429;
const isTurn = ({ kind }) => kind === "undo" || kind === "redo";
const path = (slot, event) => `/annotate/slots/${slot}/${isTurn(event) ? event.kind : "events"}`;
const body = ({ at, ...event }) => (isTurn(event) ? { key: event.key, of: event.of } : event);

export class Outbox {
  /**
   * `person` and `slot` are ids. `answered(event, answer)` is called when an event is stored, `refused(event, status,
   * message)` when it is refused; it then stays first, and nothing is sent until `drop`, `resume` or `clear`.
   * With `goesOn`, the answer to a submission may contain the next content of the page.
   * `changed()` is called whenever `events` or `away` have changed; `away` is true while the server is out of reach.
   */
  constructor(person, slot, { answered, refused, changed = () => {}, goesOn = false }) {
    Object.assign(this, { person, slot, answered, refused, changed, goesOn });
    this.events = keptEvents(person, slot);
    this.away = false;
    this.stopped = false;
    this.busy = false;
    this.pause = FIRST_PAUSE;
    this.life = new AbortController();
    window.addEventListener("online", () => this.hurry(), { signal: this.life.signal });
  }

  /** Stop listening to the network; nothing more is sent. */
  close() {
    this.life.abort();
  }

  add(event) {
    this.events.push(keepEvent(this.person, this.slot, event));
    this.changed();
    this.send();
  }

  /** Drop the refused event, and continue with the next. */
  drop() {
    this.events.splice(0, 1).forEach(dropEvent);
    this.resume();
  }

  /** Continue, with each waiting event amended, such as by the current guideline. */
  resume(amend = {}) {
    for (const event of this.events) changeEvent(Object.assign(event, amend));
    this.stopped = false;
    this.changed();
    this.send();
  }

  /** Drop all waiting events. */
  clear() {
    this.events.splice(0).forEach(dropEvent);
    this.changed();
  }

  /** Try immediately, without waiting for the end of a pause. */
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

  // True if the first event was answered.
  async sendFirst() {
    const event = this.events[0];
    const headers = this.goesOn && event.kind === "submit" ? PART : {};
    const response = await post(path(this.slot, event), body(event), { signal: AbortSignal.timeout(PATIENCE) }, headers);
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
