// For `test_buttons.py`: the buttons of a page, and what a person sees of it before and after a press.

window.lastChange = performance.now();
new MutationObserver(() => (window.lastChange = performance.now())).observe(document, {
  subtree: true,
  childList: true,
  attributes: true,
  characterData: true,
});

const boxOf = (node) => node.getBoundingClientRect();
const isShown = (node) => {
  const { width, height } = boxOf(node);
  const isThere = width > 1 && height > 1 && node.checkVisibility({ visibilityProperty: true });
  return isThere && !node.closest(".unseen, [inert]");
};
const isInView = ({ top, bottom, left, right }) =>
  bottom > 0 && top < innerHeight - 8 && right > 0 && left < innerWidth;
const shown = (selector) => [...document.querySelectorAll(selector)].filter(isShown);
const describe = (node) =>
  `<${node.tagName.toLowerCase()} class="${node.getAttribute("class") ?? ""}"> ${node.textContent.trim().slice(0, 60)}`;

// Of buttons that are alike there are a first and a last one. Their states are not part of their names.
// What opens the browser's print dialog is left out: without a window there is none.
const BUTTONS = ':is(button, summary, [role=button], input[type=submit], a[data-go]):not([title*="print dialog"])';
const kind = (node) => {
  const names = [...node.attributes].map(({ name }) => name).filter((name) => !name.startsWith("aria-")).sort();
  const around = node.parentElement.closest("[id], dialog, details, section, table, ol, ul, form");
  return [node.tagName, node.className, ...names, "in", around?.tagName, around?.id, around?.className].join(" ");
};
window.inFrame = (button) => Boolean(button.closest("nav.top"));
window.buttons = () => {
  const top = document.querySelector("dialog[open]") ?? document;
  const isOpen = (node) =>
    !node.disabled && node.ariaDisabled !== "true" && !node.ariaCurrent && top.contains(node);
  const groups = Map.groupBy(shown(BUTTONS).filter(isOpen), kind);
  const ends = ([name, all]) => [[`${name} first`, all[0]], [`${name} last`, all.at(-1)]].slice(0, all.length);
  return new Map([...groups].flatMap(ends));
};

// What an element looks like, wherever it is. Plotly gives what it draws a class by chance.
const LOOKS = [
  ..."class disabled style src d x y cx cy width height transform".split(" "),
  ...["pressed", "expanded", "selected", "checked", "current", "sort"].map((name) => `aria-${name}`),
];
const ownText = (node) =>
  [...node.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE).map(({ data }) => data.trim());
const attribute = (node, name) => (name === "class" && node instanceof SVGElement ? "" : node.getAttribute(name));
const look = (node) =>
  [node.tagName, node.value, node.checked, ...ownText(node), ...LOOKS.map((name) => attribute(node, name))].join("|");

// The elements by their look, and those that are in one scene more often than in another.
const scene = () => Map.groupBy(shown("body, body *"), look);
const surplus = (one, other) => [...one].flatMap(([key, all]) => all.slice(other.get(key)?.length ?? 0));
window.alerts = () => shown("[role=alert]");

// What holds a button together with what is said about it.
const HOLDERS = "dialog, form, [data-card], .card, li, tr, details";
const stateOf = ({ ariaPressed, ariaExpanded }) => [ariaPressed, ariaExpanded].join();

window.remember = (button) => {
  const { top, bottom } = boxOf(button);
  if (top < 0 || bottom > innerHeight) button.scrollIntoView({ block: "center", behavior: "instant" });
  window.was = {
    button,
    boxes: new Map([...scene()].map(([key, all]) => [key, all.map(boxOf)])),
    at: boxOf(button),
    hasCard: Boolean(button.closest(HOLDERS)),
    held: boxOf(button.closest(HOLDERS) ?? button),
    state: stateOf(button),
    focused: document.activeElement,
    top: scrollY,
    alerts: new Set(alerts()),
  };
};

const sum = (numbers) => numbers.reduce((one, other) => one + other, 0);
const area = ({ width, height }) => width * height;
const meets = (one, other) =>
  one.top < other.bottom && other.top < one.bottom && one.left < other.right && other.left < one.right;
const seenArea = ({ top, bottom, left, right }) => {
  const height = Math.min(bottom, innerHeight) - Math.max(top, 0);
  const width = Math.min(right, innerWidth) - Math.max(left, 0);
  return Math.max(0, height) * Math.max(0, width);
};

const outermost = (nodes) => {
  const all = new Set(nodes);
  const isWithin = (node) => node && (all.has(node) || isWithin(node.parentElement));
  return nodes.filter((node) => !isWithin(node.parentElement));
};

// What is wrong about a press, or "". What comes and goes is on the screen in parts that make up a fifth of the largest
// one or of the screen; or in the card of the button; or the button tells its own state.
window.compare = () => {
  const { button, boxes, hasCard, held, state, focused, top } = was;
  const now = scene();
  const changed = surplus(now, boxes);
  const gone = surplus(boxes, now);
  const blocks = outermost(changed.filter((node) => !button.contains(node)));
  const told = blocks.filter((node) => node.textContent.trim());
  const news = told.length ? told : blocks;
  if (button.isConnected && stateOf(button) !== state) return "";
  if (hasCard && news.map(boxOf).some((box) => meets(box, held) && isInView(box))) return "";
  if (news.length) {
    const [largest] = news.toSorted((one, other) => area(boxOf(other)) - area(boxOf(one)));
    const most = Math.min(area(boxOf(largest)), innerWidth * innerHeight);
    const share = sum([...news.map(boxOf), ...gone].map(seenArea)) / most;
    return share >= 0.2 ? "" : `out of sight at ${Math.round(boxOf(largest).top)}: ${describe(largest)}`;
  }
  if (gone.length) return gone.some(isInView) ? "" : "what is gone was out of sight";
  const { activeElement } = document;
  // The browser says beside a field what is wrong with it.
  if (activeElement.matches(":user-invalid") || (activeElement !== focused && activeElement !== button))
    return isInView(boxOf(activeElement)) ? "" : `the focus is out of sight: ${describe(activeElement)}`;
  // A form that is sent as the page has it asks for what is there.
  return changed.length || scrollY !== top || button.closest("form[data-go]") ? "" : "nothing changes";
};

// New errors, and how far each is from the button in pixels; 0 if something holds both.
window.errors = () => {
  const { button, at, alerts: earlier } = was;
  const far = (node) => {
    const [box, from] = [boxOf(node), button.checkVisibility() ? boxOf(button) : at];
    if (!isInView(box)) return 9999;
    // A modal dialog is where one looks.
    if (node.closest("dialog[open]") || node.closest(HOLDERS)?.contains(button)) return 0;
    return Math.max(0, box.top - from.bottom, from.top - box.bottom);
  };
  return alerts().filter((node) => !earlier.has(node)).map((node) => [describe(node), Math.round(far(node))]);
};
