// The page of doubtful labels: keys that lead from label to label, and to the dispute of one.
import { onChange } from "../shared/dom.js";
import { register } from "../shared/keys.js";

const inPage = (selector) => document.querySelector(`#doubtful ${selector}`);
const rows = () => [...document.querySelectorAll("#doubtful ol.doubts > li")];
const hasRows = () => Boolean(inPage("ol.doubts > li"));
const current = () => rows().findIndex((row) => row.contains(document.activeElement));

// The way by which a key left the page before: its first or its last row gets the focus.
let entered = 0;

const step = (by) => {
  const all = rows();
  const at = current();
  const next = all[at < 0 && by < 0 ? all.length - 1 : at + by];
  if (next) next.querySelector("a.open").focus();
  else if (inPage(by > 0 ? "a.next" : "a.prev")) {
    inPage(by > 0 ? "a.next" : "a.prev").click();
    entered = by;
  }
};

const dispute = () => rows()[Math.max(current(), 0)]?.querySelector("a.dispute.file");

register({ key: "j", label: "next label", when: hasRows, repeats: true, run: () => step(1) });
register({ key: "k", label: "previous label", when: hasRows, repeats: true, run: () => step(-1) });
register({ key: "Enter", label: "open the trace", when: hasRows });
register({ key: "d", label: "dispute the label", when: dispute, run: () => dispute().click() });

onChange(() => {
  if (!entered || !hasRows() || document.activeElement !== document.body) return;
  rows().at(entered > 0 ? 0 : -1).querySelector("a.open").focus();
  entered = 0;
});
