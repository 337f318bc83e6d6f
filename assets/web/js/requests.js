// What the Score page asks for: events of its interface, by name, and of several the one that was asked for last.
import { failure, patiently, say } from "./away.js";

/** The answer of an event to its inputs. Throws where there is none, with a message for the person. */
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
