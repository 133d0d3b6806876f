// The console's own script: colours, keys, and the live view of records.
"use strict";

const root = document.documentElement;
const themes = ["", "light", "dark"];

function showTheme(theme) {
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
}
showTheme(localStorage.getItem("ottla-theme") || "");

function nextTheme() {
  const now = localStorage.getItem("ottla-theme") || "";
  const theme = themes[(themes.indexOf(now) + 1) % themes.length];
  localStorage.setItem("ottla-theme", theme);
  showTheme(theme);
}

// -- keys

let afterG = false;

function moveRow(step) {
  const links = [...document.querySelectorAll("[data-open]")];
  if (!links.length) return;
  const now = links.indexOf(document.activeElement);
  const next = now < 0 ? (step > 0 ? 0 : links.length - 1) : now + step;
  links[Math.max(0, Math.min(links.length - 1, next))].focus();
}

function onKey(event) {
  const typing = event.target.closest("input, textarea, select, dialog");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return undefined;
  if (afterG) {
    afterG = false;
    const link = document.querySelector(`nav a[data-letter="${CSS.escape(event.key)}"]`);
    if (link) link.click();
    return undefined;
  }
  if (event.key === "g") afterG = true;
  else if (event.key === "j") moveRow(1);
  else if (event.key === "k") moveRow(-1);
  else if (event.key === "?") document.getElementById("help").showModal();
  else if (event.key === "/") {
    const field = document.querySelector("[data-search]");
    if (!field) return undefined;
    event.preventDefault();
    field.focus();
    field.select();
  }
  return undefined;
}

// -- live records

const ROWS_MAX = 200;
let stream = null;

function endStream(button, status, text) {
  if (stream) stream.close();
  stream = null;
  button.setAttribute("aria-pressed", "false");
  status.textContent = text;
}

function startStream(button, status) {
  const table = document.getElementById("records");
  stream = new EventSource(button.dataset.stream);
  button.setAttribute("aria-pressed", "true");
  status.textContent = "Live: connecting";
  stream.addEventListener("open", () => { status.textContent = "Live: new records appear at the top"; });
  stream.addEventListener("rows", (event) => {
    const news = JSON.parse(event.data);
    // The server has escaped every name and value.
    table.insertAdjacentHTML("afterbegin", news.html);
    while (table.rows.length > ROWS_MAX) table.deleteRow(-1);
    if (news.left_out) status.textContent = `Live: more come than a page can show; ${news.left_out} of the last second are left out`;
  });
  stream.addEventListener("problem", (event) => endStream(button, status, `Live has ended: ${event.data}`));
  stream.onerror = () => endStream(button, status, "Live has ended: the console does not answer. Press Live to begin again");
}

document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("theme").addEventListener("click", nextTheme);
  document.getElementById("help-button").addEventListener("click", () => document.getElementById("help").showModal());
  document.addEventListener("keydown", onKey);
  const button = document.querySelector("[data-stream]");
  if (button) {
    const status = document.getElementById("live-status");
    button.addEventListener("click", () => {
      if (stream) endStream(button, status, "");
      else startStream(button, status);
    });
  }
});
