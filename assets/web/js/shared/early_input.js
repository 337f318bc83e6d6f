// Input before the page's scripts were loaded, which the page has recorded, is carried out here.
import { onChange } from "./dom.js";
import { press } from "./keys.js";

const REPEAT = {
  keydown: press,
  click: ({ target }) => target.click(),
  change: ({ target }) => target.dispatchEvent(new Event("change", { bubbles: true })),
  submit: ({ target, submitter }) => target.requestSubmit(submitter),
};

onChange(() => {
  if (!window.early) return;
  const { early } = window;
  window.early = null;
  document.addEventListener("keydown", press);
  for (const event of early) if (event.target.isConnected ?? true) REPEAT[event.type](event);
});
