// What a browser keeps for a page.

/** The result of what is done with it, or `otherwise`: one that keeps nothing (a file, a private window) throws. */
export const quietly = (run, otherwise = undefined) => {
  try {
    return run();
  } catch {
    return otherwise;
  }
};
