// Events on their way to the server: kept in the browser, and sent one at a time and in order, each until it is answered.
//
// Each is always sent under its own key, so that one which arrived though its answer was lost is not done twice. A page
// that was closed finds its events again, and texts that were being typed.
import { failure } from "../shared/connection.js";
import { quietly } from "../shared/storage.js";

export const AWAY = "The server does not answer. What you typed stays here; try again.";

/** POST values as JSON; null where the server does not answer. */
export const post = (url, values, options = {}, more = {}) => {
  const headers = { "content-type": "application/json", ...more };
  return fetch(url, { method: "POST", headers, body: JSON.stringify(values), ...options }).catch(() => null);
};

/** The request header with which a page asks for content alone. */
export const PART = { "stepsight-part": "1" };

const EVENTS = "stepsight.unsent";
const TEXTS = "stepsight.typed";
let count = 0;

const keysBelow = (prefix) => quietly(() => Object.keys(localStorage).filter((key) => key.startsWith(prefix)), []).sort();
const padded = (number) => String(number).padStart(15, "0");

/** A key that no other event has. */
export const freshKey = () => {
  if (crypto.randomUUID) return crypto.randomUUID();
  // Only there where the page came by https or from this machine.
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};

// Keep an event of a person at a slot; `at` of the result is where. Each lies by itself, or two tabs would lose some.
const keepEvent = (person, slot, event) => {
  const at = `${EVENTS}.${person}.${slot}.${padded(Date.now())}.${padded(count++)}.${event.key}`;
  quietly(() => localStorage.setItem(at, JSON.stringify(event)));
  return { ...event, at };
};

const changeEvent = (event) => quietly(() => event.at in localStorage && localStorage.setItem(event.at, JSON.stringify(event)));
const dropEvent = ({ at }) => quietly(() => localStorage.removeItem(at));

const read = (at) => quietly(() => ({ ...JSON.parse(localStorage.getItem(at)), at }), null);

// The events of a person at a slot that were kept, in their order.
const keptEvents = (person, slot) => keysBelow(`${EVENTS}.${person}.${slot}.`).map(read).filter((event) => event?.key);

/** The slots at which a person has such events. */
export const keptSlots = (person) => [...new Set(keysBelow(`${EVENTS}.${person}.`).map((key) => key.split(".")[3]))];

// A slot goes to somebody else once its lease ran out, who may sit at the same browser.
const textKey = (person, slot, field) => `${TEXTS}.${person}.${slot}.${field}`;

/** Keep what a person types in a field of a slot; null forgets it. */
export const keepText = (person, slot, field, text) => {
  const at = textKey(person, slot, field);
  quietly(() => (text === null ? localStorage.removeItem(at) : localStorage.setItem(at, text)));
};

export const keptText = (person, slot, field) => quietly(() => localStorage.getItem(textKey(person, slot, field)), null);

/** Forget every text of a person at a slot. */
export const dropTexts = (person, slot) => {
  for (const key of keysBelow(textKey(person, slot, ""))) quietly(() => localStorage.removeItem(key));
};

const PATIENCE = 20_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 2000;

// Statuses that say nothing of the event itself: it may be stored later.
const comesLater = (status) => status >= 500 || status === 408 || status === 429;
const isTurn = ({ kind }) => kind === "undo" || kind === "redo";
const path = (slot, event) => `/annotate/slots/${slot}/${isTurn(event) ? event.kind : "events"}`;
const body = ({ at, ...event }) => (isTurn(event) ? { key: event.key } : event);

export class Outbox {
  /**
   * `person` and `slot` are ids. `answered(event, answer)` is called when an event is stored; `refused(event, status,
   * message)` when it will not be as it is: it stays the first and nothing is sent until `drop`, `resume` or `clear`.
   * With `goesOn` the answer to a submission may bring what the page is to show next.
   * `changed()` is called whenever `events` or `away` have changed; `away` says that the server is out of reach.
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

  /** Hear of the network no more: nothing is to be sent from here. */
  close() {
    this.life.abort();
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
