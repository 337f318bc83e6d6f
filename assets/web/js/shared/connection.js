// What a page asks the server for: while it does not answer the page says so, and what was asked for waits.
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

/** The answer of an event of the Score page's interface to its inputs. Throws where there is none, with a message for the person. */
export const ask = async (name, inputs, signal) => {
  const response = await patiently(`/gradio_api/run/${name}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ data: inputs }),
    signal,
  });
  if (response.status === 401) location.reload();
  if (!response.ok) throw new Error(await failure(response));
  const [answer] = (await response.json()).data;
  if (answer.error) throw new Error(answer.error);
  say("");
  return answer;
};

/**
 * Work of which only the last counts: one that is begun ends the one before. Gives its result, or undefined where
 * it was ended or failed, which the page says.
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
