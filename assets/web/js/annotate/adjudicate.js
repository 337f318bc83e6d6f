// The page for deciding disagreements: its keys, and decisions, which are stored before the page moves on.
import { failure } from "../shared/connection.js";
import { showNotice } from "../shared/dom.js";
import { labelKeys, register } from "../shared/keys.js";
import { AWAY, freshKey, post } from "./outbox.js";

const STEP = "#adjudicate li[data-step]";
const keys = new WeakMap();
const busy = new WeakSet();

const page = () => document.querySelector("#adjudicate");
const steps = () => [...document.querySelectorAll(STEP)];
const isReady = () => steps().length > 0;
const focused = () => document.activeElement?.closest(STEP) ?? null;
const current = () => focused() ?? document.querySelector(`${STEP}.open`) ?? steps()[0];
const item = () => page().querySelector("ol[data-item]")?.dataset.item;

const goTo = (step) => {
  step?.focus({ preventScroll: true });
  step?.scrollIntoView({ block: "nearest" });
  // Until content has been laid out, its height is a guess.
  step?.scrollIntoView({ block: "nearest" });
};

const move = (by) => {
  const all = steps();
  const from = all.indexOf(focused());
  goTo(from < 0 ? current() : all[Math.min(all.length - 1, Math.max(0, from + by))]);
};

// A decision other than the majority’s label needs a reason.
const ask = (form) => {
  const { label, reason } = form.elements;
  reason.required = !label.value || label.value !== form.dataset.majority;
};

const set = (form, label) => {
  form.querySelector(`input[name=label][value="${label}"]`).checked = true;
  ask(form);
};

const choose = (label) => {
  const form = current().querySelector("form");
  set(form, label);
  form.elements.reason.focus();
};

// A decision that is sent again because its answer was lost keeps its key; a different one gets a new key.
const keyOf = (form, content) => {
  const last = keys.get(form);
  if (last?.content === content) return last.key;
  const key = freshKey();
  keys.set(form, { content, key });
  return key;
};

const read = (form) => {
  const { label, reason, after } = Object.fromEntries(new FormData(form));
  const step = Number(form.closest(STEP).dataset.step);
  const place = { campaign: Number(page().dataset.campaign), item: Number(item()), step };
  return { ...place, label: label || null, reason, after: Number(after) };
};

const store = (form) => {
  const decision = read(form);
  return post("/annotate/adjudicate/decisions", { ...decision, key: keyOf(form, JSON.stringify(decision)) });
};

// The input in a form. It has a label only if that differs from the current decision, which may have changed in the meantime.
const entered = (step) => {
  const values = Object.fromEntries(new FormData(step.querySelector("form")));
  if (step.querySelector("input[name=label]:checked")?.defaultChecked) delete values.label;
  return [step.dataset.step, values];
};

// Input in the forms of other steps is kept.
const typed = (but) => steps().filter((step) => step.dataset.step !== but).map(entered);

const restore = (values) => {
  for (const [number, { label, reason }] of values) {
    const form = page().querySelector(`li[data-step="${number}"] form`);
    if (!form) continue;
    if (reason) form.elements.reason.value = reason;
    if (label !== undefined) form.elements.label.value = label;
    ask(form);
  }
};

// Redraw the page; the input in the form of the step `but` is no longer needed.
const draw = async (but) => {
  const place = `campaign=${page().dataset.campaign}&item=${item()}`;
  const response = await fetch(`/annotate/adjudicate?${place}`).catch(() => null);
  const text = response?.ok ? await response.text().catch(() => null) : null;
  if (text === null) return false;
  const shown = new DOMParser().parseFromString(text, "text/html").querySelector("#adjudicate");
  // Once the trace has no disagreements left, the page shows another one, which has no input yet.
  const isSame = shown.querySelector("ol[data-item]")?.dataset.item === item();
  const values = isSame ? typed(but) : [];
  page().replaceChildren(...shown.childNodes);
  restore(values);
  return true;
};

const goOn = (number) => {
  const next = steps().find((step) => Number(step.dataset.step) > Number(number) && step.matches(".open"));
  goTo(next ?? document.querySelector(`${STEP}.open`) ?? page().querySelector("a.onward") ?? page().querySelector(`li[data-step="${number}"]`));
};

const follow = (...links) => links.map((link) => page().querySelector(link)).find(Boolean)?.click();

const decide = async (form) => {
  if (busy.has(form)) return;
  busy.add(form);
  const response = await store(form);
  const number = form.closest(STEP).dataset.step;
  if (response?.ok) {
    if (await draw(number)) goOn(number);
    else location.reload();
  } else {
    const message = response ? await failure(response) : AWAY;
    // The reason, such as another person's decision, must be visible.
    if (response?.status === 409) await draw();
    const open = page().querySelector(`li[data-step="${number}"] form`) ?? form;
    showNotice(open.querySelector(".told"), message);
  }
  busy.delete(form);
};

// Keys pressed while a decision is being stored are meant for the next open steps.
let work = Promise.resolve();
let pending = 0;

const take = (form) => {
  if (!form.dataset.majority) {
    return showNotice(form.querySelector(".told"), "No label was given more often than any other: decide, and say why.");
  }
  set(form, form.dataset.majority);
  return decide(form);
};

// On a step that is already decided, the key only moves on.
const takeNext = () => {
  const isLate = pending > 0;
  pending++;
  work = work.then(async () => {
    const open = document.querySelector(`${STEP}.open`);
    const step = isLate ? open : current();
    if (!open) follow("a.onward", ".pager a[rel=next]");
    else if (!step.matches(".open")) goOn(step.dataset.step);
    else await take(step.querySelector("form"));
    pending--;
  });
};

document.addEventListener("click", ({ target }) => {
  const button = target.closest("#adjudicate [data-take]");
  if (button) take(button.form);
});

document.addEventListener("change", ({ target }) => {
  if (target.matches("#adjudicate input[name=label]")) set(target.form, target.value);
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("#adjudicate form.decision");
  if (!form) return;
  event.preventDefault();
  decide(form);
});

register({ key: "m", label: "take the majority’s label, and continue", when: isReady, run: takeNext });
for (const [key, label] of labelKeys(page())) {
  const action = label ? `decide ${label}` : "leave it unlabelled";
  register({ key, label: `${action}, then say why`, when: isReady, run: () => choose(label) });
}
register({ key: "Enter", label: "store the decision (in its reason)", when: isReady });
register({
  key: "Escape",
  label: "back to the step (in its reason)",
  when: isReady,
  within: "#adjudicate input[name=reason]",
  run: (_, field) => goTo(field.closest(STEP)),
});
register({ key: ["j", "ArrowDown"], label: "next step to decide", when: isReady, repeats: true, run: () => move(1) });
register({ key: ["k", "ArrowUp"], label: "previous step to decide", when: isReady, repeats: true, run: () => move(-1) });
register({ key: "n", label: "next trace", when: isReady, run: () => follow("a.onward", ".pager a[rel=next]") });
register({ key: "p", label: "previous trace", when: isReady, run: () => follow(".pager a[rel=prev]") });
