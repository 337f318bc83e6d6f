// While the server does not answer a page says so, and what it was asked for waits.
import { element } from "./dom.js";

export const AWAY = "The server does not answer. This page continues when it does.";
/** Milliseconds after which the server is asked again. */
export const AGAIN = 800;

/** Show a message over the page, or none. */
export const say = (message) => {
  document.querySelector("body > .away")?.remove();
  if (message) document.body.append(element("div", { class: "away notice", role: "alert" }, message));
};

/** The message of an answer that is no success. */
export const failure = async (response) => {
  const answer = await response.json().catch(() => null);
  return answer?.error ? `${answer.error} ${answer.hint ?? ""}`.trim() : `The server answered with status ${response.status}.`;
};

const pause = () => new Promise((resolve) => setTimeout(resolve, AGAIN));

/** As `fetch`, of what does no harm when it is asked for twice: until the server answers. `tell` shows a message. */
export const patiently = async (address, options, tell = say) => {
  for (;;) {
    try {
      return await fetch(address, options);
    } catch (error) {
      if (options.signal?.aborted) throw error;
      tell(AWAY);
      await pause();
      options.signal?.throwIfAborted();
    }
  }
};
