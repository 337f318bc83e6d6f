// The presentation of a trace: Evidence in large type, where keys reveal the problem, each step, and then the conclusions.
import { onArrival } from "../shared/dom.js";
import { register } from "../shared/keys.js";
import { go } from "../shared/navigation.js";
import { isValid } from "../shared/verdicts.js";
import { Evidence } from "./evidence.js";
import { NOTABLE } from "./reveal.js";

// Milliseconds between two steps during playback.
const PACE = 5000;
// The places in an address at which everything is revealed.
const ENDS = ["evidence", "note", "gold"];

let current = null;

class Presentation extends Evidence {
  begin() {
    const { present, step } = this.section.dataset;
    this.focus = Number(step);
    // Unlike on the page, what is not revealed stays hidden even when nothing is playing.
    this.hides = !ENDS.includes(present);
    this.after = this.hides ? this.names.indexOf(present) : this.last;
    this.step = this.hides ? this.mostMoved() : this.focus;
  }

  get pace() {
    return PACE;
  }

  /** Reveal this many more steps, or hide as many again. The conclusions follow the last one. */
  move(by) {
    const place = (this.hides ? this.after : this.last + 1) + by;
    this.hides = place <= this.last;
    this.after = Math.min(Math.max(place, -1), this.last);
    this.step = this.hides ? this.mostMoved() : this.focus;
    this.changed();
    const accused = this.section.querySelector("ol.steps > li:has(small.fails)") ?? this.items[this.step];
    (this.hides ? this.items[this.after] : accused)?.scrollIntoView({ block: "nearest" });
  }

  /** The step whose verdict was moved most by the last step revealed, or that step itself. */
  mostMoved() {
    const change = (step) => Math.abs(this.number(this.after, step) - this.number(this.after - 1, step));
    const earlier = [...this.names.keys()].slice(0, Math.max(this.after, 0)).filter((step) => change(step) >= NOTABLE);
    return earlier.reduce((most, step) => (most < this.after && change(step) <= change(most) ? most : step), Math.max(this.after, 0));
  }

  sentence() {
    const { after, step } = this;
    if (!this.hides) return "Conclusions";
    if (after < 0) return "Problem";
    const now = `Step ${this.names[after]}: ${this.verdict(after, after)}, ${this.number(after, after).toFixed(2)}`;
    if (step === after) return now;
    const values = [this.number(after - 1, step), this.number(after, step)];
    const [was, is] = values.map((value) => isValid(value, this.thresholds));
    const turned = was === is ? "" : ` and is ${is ? "now" : "no longer"} valid`;
    return `${now}; step ${this.names[step]} ${values[1] < values[0] ? "fell" : "rose"} from ${values[0].toFixed(2)} to ${values[1].toFixed(2)}${turned}`;
  }

  tick() {
    if (this.section.isConnected) this.move(1);
    return this.section.isConnected && this.hides;
  }

  play() {
    if (this.player.timer || this.hides) this.player.toggle();
  }

  click(event) {
    const act = { back: () => this.press(-1), next: () => this.press(1), leave }[event.target.closest("button[data-act]")?.dataset.act];
    if (act) act();
    else super.click(event);
  }

  /** Move by a key or a button. */
  press(by) {
    this.player.stop();
    this.move(by);
  }

  // The arrows are keys of the whole page.
  pressInside() {}

  go(after, step) {
    if (step <= this.after) this.look(step);
  }

  address() {
    const query = new URLSearchParams(location.search);
    query.set("present", this.hides ? (this.names[this.after] ?? "problem") : ENDS[0]);
    history.replaceState(history.state, "", `${location.pathname}?${query}`);
  }
}

const leave = () => {
  current.player.stop();
  const query = new URLSearchParams(location.search);
  query.delete("present");
  go(`${location.pathname}?${query}`);
};

onArrival("section.evidence.presents", (section) => (current = new Presentation(section)).move(0));

const isHere = () => current?.section.isConnected;
const on = (key, label, run, repeats = false) => register({ key, label, run, repeats, when: isHere, everywhere: true });
on(["ArrowRight", " ", "PageDown"], "go on", () => current.press(1), true);
on(["ArrowLeft", "PageUp"], "go back", () => current.press(-1), true);
on("Home", "back to the problem", () => current.press(-Infinity));
on("End", "reveal everything", () => current.press(Infinity));
on("p", "play, pause", () => current.play());
on("Escape", "leave the presentation", leave);
const start = () => document.querySelector("a.present");
register({ key: "s", label: "start the presentation", when: start, run: () => start().click() });
