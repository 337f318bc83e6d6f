// While the server does not answer a page says so, and what it was asked for waits.
import { element } from "./dom.js";

export const AWAY = "The server does not answer. This page goes on when it does.";
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

// One request of an event that fails, and Gradio sends none any more until it has loaded the page again.
const EVENT = "/gradio_api/run/";
const { fetch } = window;

const patiently = async (input, init) => {
  try {
    const response = await fetch(input, init);
    say("");
    return response;
  } catch (error) {
    if (init?.signal?.aborted) throw error;
    say(AWAY);
    await new Promise((resolve) => setTimeout(resolve, AGAIN));
    return patiently(input, init);
  }
};

window.fetch = (input, init) => (String(input?.url ?? input).includes(EVENT) ? patiently : fetch)(input, init);
