// The line on evaluators that do not clear the trivial baselines, where it was being measured as the page was shown. It
// comes into the room that was left for it, so that nothing moves.
import { AGAIN } from "./away.js";
import { onChange } from "./changes.js";
import { html } from "./following.js";

const pause = () => new Promise((resolve) => setTimeout(resolve, AGAIN));

const fill = (place, text) => {
  place.style.minHeight = `${place.offsetHeight}px`;
  delete place.dataset.standing;
  place.replaceChildren(html(text));
};

const ask = async (place) => {
  const address = place.dataset.standing;
  place.dataset.asked = "";
  while (place.isConnected) {
    const response = document.hidden ? null : await fetch(address).catch(() => null);
    if (response && response.status !== 202) return fill(place, response.ok ? await response.text() : "");
    await pause();
  }
};

onChange(() => document.querySelectorAll("main [data-standing]:not([data-asked])").forEach(ask));
