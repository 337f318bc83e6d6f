// Files sent in parts, which a server that was away or a page that was closed only delays.
import { failure, patiently } from "./away.js";

const post = async (address, body, type, tell, signal) => {
  const headers = { "content-type": type };
  const response = await patiently(address, { method: "POST", headers, body, signal }, tell);
  if (response.status === 401) location.reload();
  if (!response.ok) throw new Error(await failure(response));
  return response;
};

/** What the server answers to an object. Throws with a message for the person. */
export const postJson = async (address, values, tell, signal) => {
  const response = await post(address, JSON.stringify(values), "application/json", tell, signal);
  return response.status === 204 ? null : response.json();
};

/** Begin to send a file, or go on with it: the number of its upload, and how many of its bytes are there. */
export const beginUpload = (file, tell) => {
  const values = { name: file.name, size: file.size, modified: String(file.lastModified ?? "") };
  return postJson("/data/uploads", values, tell);
};

/** Send what is missing of a file, `size` bytes at a time; `show` gets how many of its bytes are there. */
export const sendRest = async (file, upload, size, { show, tell, signal }) => {
  let { received } = upload;
  while (received < file.size) {
    const part = await file.slice(received, received + size).arrayBuffer().catch(() => {
      throw new Error(`${file.name} can no longer be read. Choose it again.`);
    });
    const address = `/data/uploads/${upload.upload}/parts?start=${received}`;
    // The server says from where to go on, which is elsewhere where an answer was lost.
    ({ received } = await (await post(address, part, "application/octet-stream", tell, signal)).json());
    show(received);
  }
};
