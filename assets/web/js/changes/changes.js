// The dialog in which a dataset, scores, jobs or a campaign are renamed or deleted. A button with `data-changes` opens it, and
// the event `changed` tells the page below to redraw itself.
import { failure, patiently } from "../shared/connection.js";
import { announce, element, html, showNotice } from "../shared/dom.js";

const DONE = { rename: "renamed", delete: "deleted" };

const close = () => element("form", { method: "dialog" }, element("button", { type: "submit" }, "Close"));

// Fill the dialog with the actions for what is at `address`, or with the reason why there are none.
const fill = async (dialog, address) => {
  dialog.dataset.address = address;
  const response = await patiently(address, {});
  if (response.status === 401) location.reload();
  if (response.ok) return dialog.replaceChildren(html(await response.text()));
  const place = element("div", { class: "said" });
  dialog.replaceChildren(element("h2", { id: "changes-title" }, "Nothing to change"), place, close());
  showNotice(place, await failure(response));
};

const open = async (address) => {
  const dialog = element("dialog", { class: "keys changes", "aria-labelledby": "changes-title" });
  // A click beside the content hits the dialog's backdrop.
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("submit", (event) => {
    if (!event.target.dataset.action) return;
    event.preventDefault();
    change(dialog, event.target);
  });
  await fill(dialog, address);
  document.body.append(dialog);
  dialog.showModal();
};

const change = async (dialog, form) => {
  const { action, go } = form.dataset;
  const place = form.querySelector(".said");
  const button = form.querySelector("button");
  const [path, query] = dialog.dataset.address.split("?");
  const given = new URLSearchParams(query);
  if (action === "rename") given.set("name", form.elements.name.value);
  button.disabled = true;
  const response = await patiently(`${path}/${action}?${given}`, { method: "POST" }, (message) => showNotice(place, message));
  if (response.status === 401) location.reload();
  if (!response.ok) {
    showNotice(place, await failure(response));
    button.disabled = false;
    return;
  }
  const name = dialog.querySelector("h2").textContent;
  dialog.close();
  if (go) return location.assign(go);
  document.dispatchEvent(new CustomEvent("changed"));
  announce(`${name}: ${DONE[action]}.`);
};

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button[data-changes], dialog.changes [data-again]");
  const dialog = button?.closest("dialog.changes");
  if (dialog) fill(dialog, button.dataset.changes ?? dialog.dataset.address);
  else if (button) open(button.dataset.changes);
});
