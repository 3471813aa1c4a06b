// Chooses the view of the address, and what all views share: elements, requests, errors.

const VIEWS = Object.fromEntries(["translate", "compare", "language", "explain", "runs"].map((name) => [`/${name}`, name]));
VIEWS["/"] = "translate";

// Returns an element. Text is only ever set as text, so nothing that a model or a user wrote is read as HTML.
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

export function labelled(text, control) {
  return element("label", {}, element("span", {}, text), control);
}

export function say(text, isError = false) {
  const status = document.getElementById("status");
  status.textContent = text;
  status.classList.toggle("error", isError);
}

// Sends a request and returns the answer; throws an Error with the server's reason.
export async function ask(path, body, signal) {
  const headers = body ? { "Content-Type": "application/json" } : {};
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  const options = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal };
  const response = await fetch(path, options);
  const answer = await response.json();
  if (response.status === 401) {
    const given = await askForToken(answer.error);
    sessionStorage.setItem("token", given);
    return ask(path, body, signal);
  }
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function askForToken(reason) {
  return new Promise((resolve) => {
    const input = element("input", { type: "password", autocomplete: "off" });
    const dialog = element("dialog", {}, element("form", { method: "dialog" },
      element("p", {}, reason), labelled("Token", input), " ", element("button", {}, "Continue")));
    dialog.addEventListener("close", () => { dialog.remove(); resolve(input.value.trim()); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Returns a function that calls `call` when it was not called again for some milliseconds.
export function debounced(call, milliseconds = 300) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...values), milliseconds);
  };
}

export function words(text) {
  return text.split(/\s+/).filter(Boolean);
}

async function start() {
  const name = VIEWS[location.pathname];
  for (const link of document.querySelectorAll("nav a")) {
    if (link.pathname === `/${name}`) link.setAttribute("aria-current", "page");
  }
  try {
    const view = await import(`/page/${name}.js`);
    await view.show(document.getElementById("view"), await ask("/api/models"));
  } catch (error) {
    say(error.message, true);
  }
}

start();
