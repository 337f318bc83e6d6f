// Tells who asks, at most once a frame, that something on the page has changed.

const listeners = [];
let waiting = false;

const tell = () => {
  waiting = false;
  for (const listener of listeners) listener();
};

/** Call `listener` in the frame after the page has changed. */
export const onChange = (listener) => listeners.push(listener);

const change = () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(tell);
};

// The page may be whole before this script is there.
change();
new MutationObserver(change).observe(document.documentElement, { childList: true, subtree: true });
