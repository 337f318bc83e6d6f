// What a person has said of a trace so far, as the server tells it: labels and notes by step, and what can be undone.
//
// An act that is on its way is applied to it as the server will, so that the page shows both as one.

const LISTS = { label: "labels", comment: "comments", correction: "corrections", error: "errors" };

const copy = (draft) => ({
  ...draft,
  ...Object.fromEntries(Object.values(LISTS).map((list) => [list, [...draft[list]]])),
  undo: [...draft.undo],
  redo: [...draft.redo],
});

/** What the part of a draft that `act` is about says now. */
export const valueOf = (draft, { kind, step }) => (kind === "flag" ? draft.flag : draft[LISTS[kind]]?.[step]);

const put = (draft, { kind, step }, value) => {
  if (kind === "flag") draft.flag = value;
  else draft[LISTS[kind]][step] = value;
};

/** Whether an act of that kind can be taken back. */
export const isUndoable = (kind) => kind === "flag" || kind in LISTS;

// What stands at the end of `undo` or `redo`: an act on its way, or the number of one that the server has; of those
// from before this page was opened nothing more is known, and the server's answer tells what they were.
const known = (entry, events) => (typeof entry === "object" ? entry : events.get(entry));

const move = (draft, from, to, value, events) => {
  const entry = draft[from].at(-1);
  const act = entry === undefined ? null : known(entry, events);
  if (!act) return;
  draft[from].pop();
  put(draft, act, act[value]);
  draft[to].push(entry);
};

const does = {
  undo: (draft, act, events) => move(draft, "undo", "redo", "old", events),
  redo: (draft, act, events) => move(draft, "redo", "undo", "new", events),
  reveal: (draft, act) => (draft.revealed = Math.max(draft.revealed, act.new)),
};

const say = (draft, act) => {
  draft.undo.push({ ...act, old: valueOf(draft, act) ?? null });
  draft.redo = [];
  put(draft, act, act.new);
};

/** The draft after `acts`, in their order. `events`: the acts that the server has stored for this page, by number. */
export const after = (draft, acts, events) => {
  const result = copy(draft);
  for (const act of acts) {
    if (isUndoable(act.kind)) say(result, act);
    else does[act.kind]?.(result, act, events);
  }
  return result;
};

/** The first step in which two drafts differ, or -1. */
export const firstChange = (one, other) => {
  const lists = Object.values(LISTS);
  return one.labels.findIndex((_, step) => lists.some((list) => one[list][step] !== other[list][step]));
};

/** Of how many steps a label is asked: all, or those up to the first neg. */
export const asked = (draft, afterError) => {
  const wrong = afterError ? -1 : draft.labels.indexOf("neg");
  return wrong < 0 ? draft.labels.length : wrong + 1;
};
