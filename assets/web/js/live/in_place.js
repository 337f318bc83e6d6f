// Updating a part of a page in place. What the server sends is compared with what it sent before, and only the differences are
// applied. A press, a selection, a field or a scroll position in use survives the update, and so do changes by scripts, such as
// the order of a table.

/** The card of a name (`data-card`), or null. */
export const cardOf = (name) => (name ? document.querySelector(`[data-card="${CSS.escape(name)}"]`) : null);

// For each place, what the server sent last; and for each node of that, the node of the page that shows it.
const sent = new WeakMap();
const shownBy = new WeakMap();

const pair = (theirs, ours) => {
  shownBy.set(theirs, ours);
  theirs.childNodes.forEach((child, index) => pair(child, ours.childNodes[index]));
  return ours;
};

const copyOf = (node) => pair(node, document.importNode(node, true));

// A button for something else is a different button: a press that began on one must not end on the other.
const NAMES = ["id", "href", "name", "type", "data-key", "data-card", "data-post", "data-fetch", "data-mend", "data-changes"];
const keyOf = (node) => {
  const names = NAMES.map((name) => node.getAttribute?.(name) ?? "");
  // A chosen option stays chosen when others before it come and go.
  const value = node.nodeName === "OPTION" ? node.value : "";
  return [node.nodeName, ...names, node.control?.name ?? "", value].join(" ");
};

// For each new node, the old one that it continues: one with the same key, preferably of the same class.
const match = (olds, news) => {
  const left = Map.groupBy(olds, keyOf);
  const matches = new Map();
  for (const isLike of [(old, one) => old.className === one.className, () => true]) {
    for (const one of news) {
      const group = left.get(keyOf(one)) ?? [];
      const index = matches.has(one) ? -1 : group.findIndex((old) => isLike(old, one));
      if (index >= 0) matches.set(one, ...group.splice(index, 1));
    }
  }
  return matches;
};

const updateAttributes = (before, after, node) => {
  for (const { name } of before.attributes) if (!after.hasAttribute(name)) node.removeAttribute(name);
  for (const { name, value } of after.attributes) if (before.getAttribute(name) !== value) node.setAttribute(name, value);
};

// The same node of the page shows what the server sent again.
const follow = (before, after) => {
  shownBy.set(after, shownBy.get(before));
  before.childNodes.forEach((child, index) => follow(child, after.childNodes[index]));
};

// False if a script has put something else there, such as a typeset formula.
const hasItsChildren = (before, node) => [...before.childNodes].every((child) => shownBy.get(child)?.parentNode === node);

const updateNode = (before, after) => {
  const node = shownBy.get(before);
  if (!hasItsChildren(before, node)) {
    if (before.isEqualNode(after)) follow(before, after);
    else node.replaceWith(copyOf(after));
    return shownBy.get(after);
  }
  shownBy.set(after, node);
  if (!(after instanceof Element)) {
    if (before.data !== after.data) node.data = after.data;
    return node;
  }
  updateAttributes(before, after, node);
  updateChildren(before, after, node);
  return node;
};

const updateChildren = (before, after, node) => {
  const places = new Map([...before.childNodes].map((child, index) => [child, index]));
  const matches = match([...places.keys()], [...after.childNodes]);
  const kept = new Set(matches.values());
  for (const child of before.childNodes) if (!kept.has(child)) shownBy.get(child).remove();
  let last = null;
  let furthest = -1;
  for (const child of after.childNodes) {
    const old = matches.get(child);
    const shown = old ? updateNode(old, child) : copyOf(child);
    if (!old || places.get(old) < furthest) last ? last.after(shown) : node.prepend(shown);
    else furthest = places.get(old);
    last = shown;
  }
};

const wrapped = (content, place) => {
  const whole = place.cloneNode(false);
  whole.append(content);
  return whole;
};

/** Note that `place` shows what the server sent, before scripts change it. */
export const remember = (place) => {
  const copy = place.cloneNode(true);
  pair(copy, place);
  sent.set(place, copy);
};

/**
 * Change the element `place` into `next`, which is such an element or, as a fragment, its content. If the focused button is
 * gone, the first one of its card (`data-card`) takes the focus.
 */
export const update = (place, next) => {
  const active = place.contains(document.activeElement) ? document.activeElement : null;
  const card = active?.closest("[data-card]")?.dataset.card;
  if (!sent.has(place)) remember(place);
  const before = sent.get(place);
  const after = next instanceof Element ? next : wrapped(next, place);
  sent.set(place, after);
  if (hasItsChildren(before, place)) updateNode(before, after);
  else {
    updateAttributes(before, after, place);
    place.replaceChildren(...[...after.childNodes].map(copyOf));
    shownBy.set(after, place);
  }
  if (active && !active.isConnected && card) cardOf(card)?.querySelector("button:enabled")?.focus({ preventScroll: true });
};
