// The presentation of a trace: the address has its place; keys and buttons move forward, back and elsewhere.
import { onChange, setText } from "../shared/dom.js";
import { readKey, register } from "../shared/keys.js";
import { go } from "../shared/navigation.js";
import { quietly } from "../shared/storage.js";
import { PresentationView } from "./presentation_view.js";
import { onArrival, Player } from "./reveal.js";

const KEPT = "stepsight.pace";
// Seconds between two places.
const PACES = [1, 2, 3, 4, 5, 7, 10, 15, 20, 30];
const USUAL = 5;
// Keys that do not stop automatic playing.
const PACING = ["", "p", "+", "-", "f"];
const NAMES = { problem: "Problem", evidence: "Evidence", note: "About this solution", gold: "Gold" };
const DIGITS = [..."0123456789"];

let current = null;
// The keys pressed between the request of a presentation and its arrival, null at other times.
let waiting = null;

class Presentation {
  constructor(section) {
    this.section = section;
    this.view = new PresentationView(section);
    this.places = JSON.parse(section.dataset.places);
    this.steps = this.view.names.length;
    this.place = Number(section.dataset.place);
    this.player = new Player(section.querySelector("[data-act=play]"), () => 1000 * this.pace, () => this.tick());
    this.digits = "";
    const kept = Number(quietly(() => localStorage.getItem(KEPT)));
    this.pace = PACES.includes(kept) ? kept : USUAL;
    section.addEventListener("click", ({ target }) => this.click(target.closest("button[data-act]")));
    // The keys stay with the presentation, and not with the button that was clicked.
    section.querySelector(".conduct").addEventListener("mousedown", (event) => event.preventDefault());
    this.section.querySelector("[data-act=full]").hidden = !document.fullscreenEnabled;
    this.fit = () => this.view.fit();
    window.addEventListener("resize", this.fit);
    document.fonts.ready.then(this.fit);
    this.show();
    this.showPace();
    this.showFull();
    this.learn();
    section.focus({ preventScroll: true });
  }

  get isThere() {
    return this.section.isConnected;
  }

  get last() {
    return this.places.length - 1;
  }

  click(button) {
    const acts = { back: () => this.by(-1), next: () => this.by(1), play: () => this.play(), full: () => this.full() };
    acts.faster = () => this.setPace(-1);
    acts.slower = () => this.setPace(1);
    acts.leave = () => this.leave();
    if (button) acts[button.dataset.act]();
  }

  by(things) {
    this.player.stop();
    this.goTo(this.place + things);
  }

  goTo(place) {
    this.forget();
    const next = Math.min(Math.max(place, 0), this.last);
    if (next === this.place) return;
    this.place = next;
    this.section.querySelector(".notice")?.remove();
    this.show();
    this.speak();
    const query = new URLSearchParams(location.search);
    query.set("present", this.places[next]);
    // The browser's Back leaves the presentation at any place.
    history.replaceState(history.state, "", `${location.pathname}?${query}`);
  }

  shown() {
    return [Math.min(this.place, this.steps), Math.max(0, this.place - this.steps)];
  }

  show() {
    this.view.show(...this.shown());
    this.say("");
    this.section.querySelector("[data-act=back]").setAttribute("aria-disabled", this.place === 0);
    for (const act of ["next", "play"]) {
      this.section.querySelector(`[data-act=${act}]`).setAttribute("aria-disabled", this.place === this.last);
    }
  }

  speak() {
    setText(this.section.querySelector("[role=status]"), this.view.told(...this.shown()));
  }

  /** The text beside the buttons: the place of the presentation, or a message. */
  say(message) {
    const name = this.places[this.place];
    setText(this.section.querySelector(".place"), message || (NAMES[name] ?? `Step ${name}`));
  }

  digit(digit) {
    this.player.stop();
    this.digits = `${this.digits}${digit}`.slice(-4);
    const most = parseInt(this.view.names.at(-1), 10);
    // No further digit could make it the number of a step.
    if (Number(this.digits) * 10 > most || Number(this.digits) === 0) this.jump();
    else this.say(`Go to ${this.digits}: Enter`);
  }

  jump() {
    const number = Number(this.digits);
    const found = this.view.names.findIndex((name) => parseInt(name, 10) === number);
    this.forget();
    if (number && found < 0) {
      this.say(`No step ${number}`);
      setText(this.section.querySelector("[role=status]"), `There is no step ${number}.`);
    } else this.goTo(number ? found + 1 : 0);
  }

  forget() {
    this.digits = "";
    this.say("");
  }

  play() {
    if (this.player.timer || this.place < this.last) this.player.toggle();
  }

  tick() {
    if (!this.isThere) return false;
    this.goTo(this.place + 1);
    return this.place < this.last;
  }

  setPace(by) {
    const place = PACES.indexOf(this.pace) + by;
    this.pace = PACES[Math.min(Math.max(place, 0), PACES.length - 1)];
    quietly(() => localStorage.setItem(KEPT, this.pace));
    if (this.player.timer) {
      this.player.stop();
      this.player.toggle();
    }
    this.showPace();
  }

  showPace() {
    setText(this.section.querySelector(".seconds"), `${this.pace} s`);
  }

  async full() {
    try {
      if (document.fullscreenElement) await document.exitFullscreen();
      else await document.documentElement.requestFullscreen();
    } catch {
      this.say("The browser refused full screen");
    }
  }

  showFull() {
    this.section.querySelector("[data-act=full]").setAttribute("aria-pressed", document.fullscreenElement !== null);
  }

  /** Request the leave-one-out scores of the step shown as evidence. */
  async learn() {
    const { ask, focus } = this.section.dataset;
    if (!ask) return;
    const answer = await fetch(ask).catch(() => null);
    if (!answer?.ok) return;
    const { says } = await answer.json();
    this.view.addEvidence(says[Number(focus)]);
  }

  escape() {
    if (this.digits) this.forget();
    else this.leave();
  }

  leave() {
    // As the browser's Back does, if that leads to the page that it was opened from.
    if (history.state?.presented) return history.back();
    const query = new URLSearchParams(location.search);
    query.delete("present");
    go(`${location.pathname}?${query}`);
  }

  stop() {
    this.player.stop();
    window.removeEventListener("resize", this.fit);
    if (document.fullscreenElement) document.exitFullscreen();
  }
}

onChange(() => {
  if (!current || current.isThere) return;
  current.stop();
  current = null;
});
onArrival("section.presentation", (section) => {
  current = new Presentation(section);
  if (!waiting) return;
  history.replaceState({ ...history.state, presented: true }, "");
  const pressed = waiting;
  waiting = null;
  for (const run of pressed) run(current);
});

const isThere = () => current?.isThere;
const start = () => document.querySelector("a.present");
document.addEventListener("click", (event) => {
  // Only a click that the page handles itself, not one that opens another window.
  if (event.target.closest?.("a.present") && event.defaultPrevented) waiting = [];
});
window.addEventListener("popstate", () => (waiting = null));
document.addEventListener("fullscreenchange", () => current?.showFull());
document.addEventListener("keydown", (event) => current?.player.timer && !PACING.includes(readKey(event)) && current.player.stop(), true);

const on = (key, label, run, options = {}) =>
  register({
    key,
    label,
    when: () => isThere() || waiting,
    run: (pressed) => (isThere() ? run(current, pressed) : waiting.push((presentation) => run(presentation, pressed))),
    everywhere: true,
    ...options,
  });

on(["ArrowRight", " ", "PageDown"], "go on", (presentation) => presentation.by(1), { repeats: true });
on(["ArrowLeft", "PageUp"], "go back", (presentation) => presentation.by(-1), { repeats: true });
on("Home", "back to the problem", (presentation) => presentation.by(-presentation.last));
on("End", "reveal everything", (presentation) => presentation.by(presentation.last));
on(DIGITS, "go to a step", (presentation, digit) => presentation.digit(digit), { shown: ["0–9", "Enter"] });
register({ key: "Enter", label: "go to the step typed", when: () => isThere() && current.digits, run: () => current.jump() });
on("p", "play, pause", (presentation) => presentation.play());
on(["+", "-"], "play slower, faster", (presentation, sign) => presentation.setPace(sign === "+" ? 1 : -1));
on("f", "full screen", (presentation) => presentation.full());
on("Escape", "leave the presentation", (presentation) => presentation.escape());
register({ key: "s", label: "start the presentation", when: start, run: () => start().click() });
