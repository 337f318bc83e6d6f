// Creating and changing elements of a page, and observing its changes.

const append = (node, attributes, content) => {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...content);
  return node;
};

/** A new element with its attributes and content. */
export const element = (tag, attributes = {}, ...content) => append(document.createElement(tag), attributes, content);

/** A new element of an SVG drawing. */
export const drawn = (tag, attributes = {}, ...content) =>
  append(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, content);

/** A template of an HTML text. */
export const template = (text) => Object.assign(document.createElement("template"), { innerHTML: text });

/** The elements of an HTML text as a fragment. */
export const html = (text) => template(text).content;

/** Set a node's text; setting the same text does not count as a change of the page. */
export const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

// What identifies a control of new content with one of the old content.
const nameOf = (node) =>
  node.dataset.key ?? [node.tagName, node.getAttribute("href"), node.getAttribute("aria-label") ?? (node.name || node.textContent)].join(" ");

/**
 * Replace the content of `room`. The focus moves to the same control in the new content, together with text being typed into a
 * field. Unfolded details stay open, and the position on the screen is kept.
 */
export const replaceContent = (room, content) => {
  const held = room.contains(document.activeElement) ? document.activeElement : null;
  const open = new Set([...room.querySelectorAll("details[open] > summary[data-key]")].map(({ dataset }) => dataset.key));
  room.replaceChildren(content);
  for (const summary of room.querySelectorAll("details > summary[data-key]")) summary.parentElement.open ||= open.has(summary.dataset.key);
  if (!held) return;
  const controls = [...room.querySelectorAll("a, button, input, select, textarea, summary, [tabindex]")];
  const same = controls.find((node) => nameOf(node) === nameOf(held));
  if (same?.matches("input:not([type=checkbox], [type=radio]), textarea")) same.value = held.value;
  same?.focus({ preventScroll: true });
};

/** Show a message with controls in `place`, and scroll it into view; an empty message clears it. */
export const showNotice = (place, message, ...controls) => {
  const spaced = controls.flatMap((control) => [" ", control]);
  place.replaceChildren(...(message ? [element("div", { class: "notice", role: "alert" }, message, ...spaced)] : []));
  if (message) place.scrollIntoView({ block: "nearest" });
};

// Screen readers announce a change of the page in one sentence, not by reading the page.
const LONGEST = 160;

/** A text, cut between words if it is long. */
export const shortened = (text, longest = LONGEST) =>
  text.length <= longest ? text : `${text.slice(0, longest - 2).replace(/\s+\S*$/, "")} …`;

/** Have screen readers announce a sentence. */
export const announce = (sentence) => {
  const place = document.querySelector("#announced");
  if (place) setText(place, shortened(sentence));
};

// Listeners are notified of changes of the page, at most once per frame.
const listeners = [];
let waiting = false;

const tell = () => {
  waiting = false;
  for (const listener of listeners) listener();
};

/** Call `listener` in the frame after the page has changed. */
export const onChange = (listener) => listeners.push(listener);

/** Call `begin` with each new element of a selector in the page. */
export const onArrival = (selector, begin) => {
  const look = () => {
    const node = document.querySelector(`${selector}:not([data-started])`);
    if (!node) return;
    node.dataset.started = "1";
    begin(node);
  };
  onChange(look);
  look();
};

const change = () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(tell);
};

// The page may be complete before this script is loaded.
change();
new MutationObserver(change).observe(document.documentElement, { childList: true, subtree: true });
