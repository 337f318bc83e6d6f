// What screen readers say when a page has changed: one sentence, and never the page.
import { setText } from "./dom.js";

const LONGEST = 160;

/** A text cut at a word, if it is long. */
export const shortened = (text, longest = LONGEST) =>
  text.length <= longest ? text : `${text.slice(0, longest - 2).replace(/\s+\S*$/, "")} …`;

/** Have a sentence read out. */
export const announce = (sentence) => {
  const place = document.querySelector("#announced");
  if (place) setText(place, shortened(sentence));
};
