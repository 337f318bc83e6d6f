// Elements of a page, made and changed.

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

/** Put a text into a node, which only counts as a change where it is another one. */
export const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

/** Show a message in `place`, with something to press; nothing where it is empty. */
export const showNotice = (place, message, ...controls) => {
  const spaced = controls.flatMap((control) => [" ", control]);
  place.replaceChildren(...(message ? [element("div", { class: "notice", role: "alert" }, message, ...spaced)] : []));
};
