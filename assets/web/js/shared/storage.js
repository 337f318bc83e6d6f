// Values that the browser stores for a page.

/** The result of an access to the storage, or `otherwise` if it throws, as for a file or in a private window. */
export const quietly = (run, otherwise = undefined) => {
  try {
    return run();
  } catch {
    return otherwise;
  }
};
