// Requests to the server. While it does not answer, the page says so and the request waits.
import { element } from "./dom.js";

export const AWAY = "The server does not answer. This page continues when it does.";
/** Milliseconds until a request is repeated. */
export const AGAIN = 800;

// The control used last: a message appears beside it while it is in view, otherwise in a corner.
let used = null;
const note = ({ target }) => {
  if (target.getBoundingClientRect) used = { target, box: target.getBoundingClientRect() };
};
for (const name of ["click", "change", "submit"]) addEventListener(name, note, true);

const EDGE = 16;

const putBeside = (notice) => {
  // Whatever was redrawn in the meantime is roughly where it was.
  const { top, bottom, left } = used.target.isConnected ? used.target.getBoundingClientRect() : used.box;
  const { height, width } = notice.getBoundingClientRect();
  if (bottom < 0 || top > innerHeight) return;
  const below = bottom + EDGE / 2;
  const above = Math.max(EDGE, top - EDGE / 2 - height);
  const place = below + height > innerHeight ? above : below;
  notice.style.inset = `${place}px auto auto ${Math.max(EDGE, Math.min(left, innerWidth - width - EDGE))}px`;
};

/** Show a message over the page, beside what was pressed; an empty one clears it. */
export const say = (message) => {
  const earlier = document.querySelector("body > .away");
  if (earlier && earlier.textContent === message) return;
  earlier?.remove();
  if (!message) return;
  const notice = element("div", { class: "away notice", role: "alert" }, message);
  document.body.append(notice);
  if (used) putBeside(notice);
};

/** The error message of a response. */
export const failure = async (response) => {
  const answer = await response.json().catch(() => null);
  const sentence = answer?.error?.replace(/^th(?=e |ere )/, "Th");
  return sentence ? `${sentence} ${answer.hint ?? ""}`.trim() : `The server answered with status ${response.status}.`;
};

const pause = () => new Promise((resolve) => setTimeout(resolve, AGAIN));

/** Like `fetch`, but repeated until the server answers, for requests that may be sent twice. `tell` shows a message. */
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

/** The answer to values sent as JSON, null if there is none. Throws an error with a message for the person. */
export const post = async (address, values, tell = say, signal = undefined) => {
  const headers = { "content-type": "application/json" };
  const response = await patiently(address, { method: "POST", headers, body: JSON.stringify(values), signal }, tell);
  if (response.status === 401) location.reload();
  if (!response.ok) throw new Error(await failure(response));
  return response.status === 204 ? null : response.json();
};

/** The answer of a route of the Score page. Throws an error with a message for the person. */
export const ask = async (name, values, signal) => {
  const answer = await post(`/score/${name}`, values, say, signal);
  say("");
  return answer;
};

/**
 * Work of which only the last call counts: each call aborts the one before. Returns its result, or undefined if it was
 * aborted or has failed, in which case the page shows the error.
 */
export const latest = (work) => {
  let current = null;
  const begin = async (...inputs) => {
    current?.abort();
    const mine = (current = new AbortController());
    try {
      const result = await work(mine.signal, ...inputs);
      return mine === current ? result : undefined;
    } catch (error) {
      if (mine === current && !mine.signal.aborted) say(error.message);
      return undefined;
    } finally {
      if (mine === current) current = null;
    }
  };
  begin.isBusy = () => current !== null;
  begin.end = () => {
    current?.abort();
    current = null;
  };
  return begin;
};
