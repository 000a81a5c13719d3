// Shows turns as they happen, over the chat's WebSocket. Whatever comes is set as text: answers and records are data,
// and may hold markup that somebody else wrote.
"use strict";

const find = (id) => document.getElementById(id);
let socket = null;
let answer = null; // the node that the running answer is written to
let waiting = null; // the id of the change that the dialog asks about

function add(kind, text) {
  const node = document.createElement("div");
  node.className = kind;
  node.dir = "auto";
  node.textContent = text;
  find("log").append(node);
  node.scrollIntoView({ block: "end" });
  return node;
}

function setBusy(busy) {
  const open = socket !== null && socket.readyState === WebSocket.OPEN;
  find("text").disabled = find("send").disabled = busy || !open;
  find("stop").disabled = !busy || !open;
  if (!busy) find("text").focus();
}

function shown(value, label) {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  return label ? `${label} (${text})` : text;
}

function cells(...texts) {
  const row = document.createElement("tr");
  for (const text of texts) row.insertCell().textContent = text;
  find("changes").append(row);
}

// Without a preview nobody knows the old values: what was asked for is shown alone.
function ask(event) {
  const preview = event.preview;
  waiting = event.id;
  find("what").textContent = `Run ${event.mutation}?`;
  find("row").textContent = preview?.row ? `${preview.manager} ${preview.row.id}: ${preview.row.label ?? ""}` : "";
  find("changes").replaceChildren();
  for (const item of preview?.changes ?? []) {
    cells(
      item.field,
      "old" in item ? shown(item.old, item.old_label) : "",
      "new" in item ? shown(item.new, item.new_label) : "",
    );
  }
  for (const item of preview?.arguments ?? []) cells(item.name, "", shown(item.value, item.label));
  if (!preview) for (const [name, value] of Object.entries(event.input)) cells(name, "", shown(value));
  const also = (preview?.also_deleted ?? []).map((item) => `${item.rows} of ${item.manager}`);
  find("along").textContent = also.length ? `Also deleted: ${also.join(", ")}` : "";
  find("dialog").showModal();
}

function decide(confirmed) {
  find("dialog").close();
  if (waiting === null) return;
  socket.send(JSON.stringify({ type: "confirm", confirmation_id: waiting, confirmed }));
  waiting = null;
}

function end(event) {
  for (const item of event.orchestration?.citations ?? []) add("citation", `source: ${JSON.stringify(item)}`);
  find("dialog").close(); // its time may be over
  waiting = answer = null;
  setBusy(false);
}

function receive(event) {
  switch (event.type) {
    case "text_chunk":
      answer ??= add("answer", "");
      answer.textContent += event.content;
      break;
    case "tool_call":
      answer = null;
      add("call", `${event.name} ${JSON.stringify(event.args)}`);
      break;
    case "tool_result":
      add("call", `→ ${JSON.stringify(event.result)}`);
      break;
    case "confirm_mutation":
      answer = null;
      ask(event);
      break;
    case "error":
      add("error", `${event.code}: ${event.message}`);
      end(event);
      break;
    case "done":
      end(event);
  }
}

function connect() {
  socket?.close();
  const opened = (socket = new WebSocket(`${location.protocol.replace("http", "ws")}//${location.host}/chat/`));
  opened.onopen = () => {
    find("state").textContent = "connected";
    setBusy(false);
  };
  opened.onmessage = (message) => opened === socket && receive(JSON.parse(message.data));
  opened.onclose = (event) => {
    if (opened !== socket) return;
    find("state").textContent = `disconnected (${event.code}); choose a user to go on`;
    setBusy(true);
  };
}

find("user").onchange = async (event) => {
  const body = new URLSearchParams({ username: event.target.value, password: "demo" });
  const response = await fetch("/demo/login/", { method: "POST", body });
  find("log").replaceChildren();
  answer = null;
  if (response.ok) connect();
  else find("state").textContent = "the login failed";
};

find("form").onsubmit = (event) => {
  event.preventDefault();
  const text = find("text").value.trim();
  if (!text) return;
  add("question", text);
  find("text").value = "";
  answer = null;
  setBusy(true);
  socket.send(JSON.stringify({ type: "message", text }));
};

find("stop").onclick = () => socket.send(JSON.stringify({ type: "cancel" }));
find("approve").onclick = () => decide(true);
find("reject").onclick = () => decide(false);
find("dialog").oncancel = (event) => {
  event.preventDefault(); // Escape is no approval
  decide(false);
};
