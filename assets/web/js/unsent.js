// What is not stored yet, kept in the browser: events on their way, and texts that are being typed. A page that was
// closed finds them again.

const EVENTS = "stepsight.unsent";
const TEXTS = "stepsight.typed";
let count = 0;

// A browser that keeps nothing for a page (a private window, a full disk) throws; the page then warns before it closes.
const quietly = (run, otherwise = undefined) => {
  try {
    return run();
  } catch {
    return otherwise;
  }
};

const keysBelow = (prefix) => quietly(() => Object.keys(localStorage).filter((key) => key.startsWith(prefix)), []).sort();
const padded = (number) => String(number).padStart(15, "0");

/** A key that no other event has. */
export const freshKey = () => {
  if (crypto.randomUUID) return crypto.randomUUID();
  // Only there where the page came by https or from this machine.
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};

/** Keep an event of a person at a slot; `at` of the result is where. Each lies by itself, or two tabs would lose some. */
export const keepEvent = (person, slot, event) => {
  const at = `${EVENTS}.${person}.${slot}.${padded(Date.now())}.${padded(count++)}.${event.key}`;
  quietly(() => localStorage.setItem(at, JSON.stringify(event)));
  return { ...event, at };
};

export const changeEvent = (event) => quietly(() => event.at in localStorage && localStorage.setItem(event.at, JSON.stringify(event)));
export const dropEvent = ({ at }) => quietly(() => localStorage.removeItem(at));

const read = (at) => quietly(() => ({ ...JSON.parse(localStorage.getItem(at)), at }), null);

/** The events of a person at a slot that were kept, in their order. */
export const keptEvents = (person, slot) => keysBelow(`${EVENTS}.${person}.${slot}.`).map(read).filter((event) => event?.key);

/** The slots at which a person has such events. */
export const keptSlots = (person) => [...new Set(keysBelow(`${EVENTS}.${person}.`).map((key) => Number(key.split(".")[3])))];

// A slot goes to somebody else once its lease ran out, who may sit at the same browser.
const textKey = (person, slot, field) => `${TEXTS}.${person}.${slot}.${field}`;

/** Keep what a person types in a field of a slot; null forgets it. */
export const keepText = (person, slot, field, text) => {
  const at = textKey(person, slot, field);
  quietly(() => (text === null ? localStorage.removeItem(at) : localStorage.setItem(at, text)));
};

export const keptText = (person, slot, field) => quietly(() => localStorage.getItem(textKey(person, slot, field)), null);

/** Forget every text of a person at a slot. */
export const dropTexts = (person, slot) => {
  for (const key of keysBelow(textKey(person, slot, ""))) quietly(() => localStorage.removeItem(key));
};
