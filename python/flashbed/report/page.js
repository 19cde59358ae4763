// The page is complete without this script. It opens the folded part that a link leads into, and marks
// tables that continue to the right.
"use strict";
function named() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return ""; // an address such as #% is no name
  }
}
function unfold() {
  const there = document.getElementById(named());
  for (let at = there; at; at = at.parentElement) {
    if (at.tagName === "DETAILS") at.open = true;
  }
  if (there) there.scrollIntoView();
}
function hint() {
  for (const box of document.querySelectorAll(".wide")) {
    box.classList.toggle("more", box.scrollWidth > box.clientWidth + 1);
  }
}
addEventListener("hashchange", unfold);
addEventListener("resize", hint);
document.addEventListener("toggle", hint, true);
if (location.hash) unfold();
hint();
