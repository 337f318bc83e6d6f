// Acts on their way to the server: one at a time and in order, each until it is answered, always under its own key,
// so that one which arrived though its answer was lost is not done twice.
import { changeAct, dropAct, keepAct, keptActs } from "./unsent.js";

const PATIENCE = 20_000;
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;

// What says nothing of the act itself, and may go well later.
const comesLater = (status) => status >= 500 || status === 408 || status === 429;
const isMove = ({ kind }) => kind === "undo" || kind === "redo";
const path = (slot, act) => `/relabel/slots/${slot}/${isMove(act) ? act.kind : "events"}`;
const body = ({ at, ...act }) => JSON.stringify(isMove(act) ? { key: act.key } : act);

/** What an answer that is no success says. */
export const failure = async (response) => {
  const told = await response.json().catch(() => null);
  return told?.error ? `${told.error} ${told.hint ?? ""}`.trim() : `The server answered with status ${response.status}.`;
};

export class Outbox {
  /**
   * `person` and `slot` are ids. `answered(act, answer)` is called when an act is stored; `refused(act, status,
   * message)` when it will not be as it is: it stays the first and nothing is sent until `drop`, `resume` or `clear`.
   * `changed()` is called whenever `acts` or `away` have changed; `away` says that the server is out of reach.
   */
  constructor(person, slot, { answered, refused, changed = () => {} }) {
    Object.assign(this, { person, slot, answered, refused, changed });
    this.acts = keptActs(person, slot);
    this.away = false;
    this.stopped = false;
    this.busy = false;
    this.pause = FIRST_PAUSE;
    window.addEventListener("online", () => this.hurry());
  }

  add(act) {
    this.acts.push(keepAct(this.person, this.slot, act));
    this.changed();
    this.send();
  }

  /** Forget the act that was refused, and go on with the next. */
  drop() {
    this.acts.splice(0, 1).forEach(dropAct);
    this.resume();
  }

  /** Go on, after each act that waits was amended, such as by the guideline that it is said under. */
  resume(amend = {}) {
    for (const act of this.acts) changeAct(Object.assign(act, amend));
    this.stopped = false;
    this.changed();
    this.send();
  }

  /** Forget everything that waits. */
  clear() {
    this.acts.splice(0).forEach(dropAct);
    this.changed();
  }

  /** Try at once, without the rest of a pause. */
  hurry() {
    this.pause = FIRST_PAUSE;
    clearTimeout(this.timer);
    this.send();
  }

  async send() {
    while (!this.busy && !this.stopped && this.acts.length) {
      this.busy = true;
      const arrived = await this.sendFirst();
      this.busy = false;
      if (!arrived) return this.wait();
      this.pause = FIRST_PAUSE;
    }
  }

  // Whether the first act was answered.
  async sendFirst() {
    const act = this.acts[0];
    const headers = { "content-type": "application/json" };
    const options = { method: "POST", headers, body: body(act), signal: AbortSignal.timeout(PATIENCE) };
    const response = await fetch(path(this.slot, act), options).catch(() => null);
    if (!response || comesLater(response.status)) return false;
    const answer = response.ok ? await response.json().catch(() => null) : await failure(response);
    if (answer === null) return false;
    this.away = false;
    this.settle(act, response, answer);
    return true;
  }

  settle(act, response, answer) {
    if (response.ok) {
      this.acts.shift();
      dropAct(act);
      this.answered(act, answer);
    } else {
      this.stopped = true;
      this.refused(act, response.status, answer);
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
