// Requests of the relabelling pages: JSON to the server, and its refusals where the person is.
import { element } from "./dom.js";

export const AWAY = "The server does not answer. What you typed stays here; try again.";

/** POST values as JSON; null where the server does not answer. */
export const post = (url, values, options = {}) => {
  const headers = { "content-type": "application/json" };
  return fetch(url, { method: "POST", headers, body: JSON.stringify(values), ...options }).catch(() => null);
};

/** The message of an answer that is no success. */
export const failure = async (response) => {
  const answer = await response.json().catch(() => null);
  return answer?.error ? `${answer.error} ${answer.hint ?? ""}`.trim() : `The server answered with status ${response.status}.`;
};

/** Show a message in `place`, with something to press; nothing where it is empty. */
export const showNotice = (place, message, ...controls) => {
  const spaced = controls.flatMap((control) => [" ", control]);
  place.replaceChildren(...(message ? [element("div", { class: "notice", role: "alert" }, message, ...spaced)] : []));
};
