// Elements of a page, made and changed, and those who want to know of a change.

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

/** The elements that an HTML text spells, as a fragment. */
export const html = (text) => template(text).content;

/** Put a text into a node, which only counts as a change where it is another one. */
export const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

/** Show a message in `place`, with something to press; nothing where it is empty. */
export const showNotice = (place, message, ...controls) => {
  const spaced = controls.flatMap((control) => [" ", control]);
  place.replaceChildren(...(message ? [element("div", { class: "notice", role: "alert" }, message, ...spaced)] : []));
};

// What screen readers say when a page has changed: one sentence, and never the page.
const LONGEST = 160;

/** A text cut at a word, if it is long. */
export const shortened = (text, longest = LONGEST) =>
  text.length <= longest ? text : `${text.slice(0, longest - 2).replace(/\s+\S*$/, "")} …`;

/** Have a sentence read out. */
export const announce = (sentence) => {
  const place = document.querySelector("#announced");
  if (place) setText(place, shortened(sentence));
};

// Tells who asks, at most once a frame, that something on the page has changed.
const listeners = [];
let waiting = false;

const tell = () => {
  waiting = false;
  for (const listener of listeners) listener();
};

/** Call `listener` in the frame after the page has changed. */
export const onChange = (listener) => listeners.push(listener);

const change = () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(tell);
};

// The page may be whole before this script is there.
change();
new MutationObserver(change).observe(document.documentElement, { childList: true, subtree: true });
