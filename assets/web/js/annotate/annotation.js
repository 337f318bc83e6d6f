// The annotation of a trace from the server, with the events folded in that are still on their way.
//
// A copy of the fold in storage/labelling/annotation.py, so that a key press shows at once; tests hold both to the
// same sequences of events.

const LISTS = { label: "labels", comment: "comments", correction: "corrections", error: "errors", evidence: "evidence" };

const copy = (annotation) => ({
  ...annotation,
  ...Object.fromEntries(Object.values(LISTS).map((list) => [list, [...annotation[list]]])),
  suggested: [...annotation.suggested],
  undo: [...annotation.undo],
  redo: [...annotation.redo],
});

/** The current value of the part of an annotation that an event changes. */
export const valueOf = (annotation, { kind, step }) =>
  (kind === "flag" ? annotation.flag : annotation[LISTS[kind]]?.[step]) ?? null;

// If a label changes once a later step is in view, the newest step is its evidence, or none if all steps have been in view.
const askForEvidence = (annotation, step, label) => {
  const [newest, before] = [annotation.revealed - 1, annotation.labels[step]];
  if (step < newest && before !== null && before !== label) {
    annotation.evidence[step] = annotation.stepwise && label !== null ? newest : null;
  }
};

const setValue = (annotation, { kind, step }, value) => {
  if (kind === "label") askForEvidence(annotation, step, value);
  if (kind === "flag") annotation.flag = value;
  else annotation[LISTS[kind]][step] = value;
  // A suggested label that a person sets becomes their own.
  if (kind === "label") annotation.suggested[step] = null;
};

/** True if an event of that kind can be undone. */
export const isUndoable = (kind) => kind === "flag" || kind in LISTS;

const replace = (annotation, event) => {
  const old = valueOf(annotation, event);
  if (JSON.stringify(old) !== JSON.stringify(event.new)) {
    annotation.undo.push({ ...event, old });
    annotation.redo = [];
  }
  setValue(annotation, event, event.new);
};

// `undo` and `redo` contain events on their way, and the keys of stored ones. Only the server knows the content of those
// stored before this page was opened, or by another window.
const turn = (annotation, from, to, value, stored) => {
  const entry = annotation[from].pop();
  if (entry === undefined) return;
  const event = typeof entry === "object" ? entry : stored.get(entry);
  if (event) setValue(annotation, event, event[value]);
  annotation[to].push(entry);
};

const leave = (annotation) => (annotation.submitted = false);

const FOLD = {
  undo: (annotation, event, stored) => turn(annotation, "undo", "redo", "old", stored),
  redo: (annotation, event, stored) => turn(annotation, "redo", "undo", "new", stored),
  reveal: (annotation, event) => (annotation.revealed = Math.max(annotation.revealed, event.new)),
  submit: (annotation) => Object.assign(annotation, { submitted: true, revealed: annotation.labels.length }),
  reopen: leave,
  withdraw: leave,
  skip: leave,
};

/** The annotation with `events` folded in, in order; `stored` are the events that the server stored for this page, by key. */
export const fold = (annotation, events, stored) => {
  const result = copy(annotation);
  for (const event of events) {
    if (isUndoable(event.kind)) replace(result, event);
    else FOLD[event.kind]?.(result, event, stored);
  }
  return result;
};

/** The steps in which two annotations differ. */
export const changedSteps = (one, other) => {
  const lists = Object.values(LISTS);
  return [...one.labels.keys()].filter((step) => lists.some((list) => one[list][step] !== other[list][step]));
};

/** The number of steps that need a label: all, or those up to the first neg. */
export const neededSteps = (annotation, afterError) => {
  const wrong = afterError ? -1 : annotation.labels.indexOf("neg");
  return wrong < 0 ? annotation.labels.length : wrong + 1;
};
