/** A new element with its attributes and content. */
export const made = (tag, attributes = {}, ...content) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...content);
  return element;
};

/** Put a text into an element, which only counts as a change where it is another one. */
export const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};
