// Puts the live figures of the playground in their pictures' places (docs/site/live_figures.py). A
// picture stays until its figure is drawn, so a browser that cannot draw it shows the picture.
"use strict";
for (const place of document.querySelectorAll(".live-figure")) {
  const frame = document.createElement("iframe");
  frame.loading = "lazy";
  frame.title = place.querySelector("img")?.alt ?? "";
  frame.src = place.dataset.live;
  addEventListener("message", (event) => {
    if (event.source !== frame.contentWindow || event.data?.flashbed !== "drawn") return;
    place.classList.add("drawn");
    frame.style.height = `${Math.min(1200, Math.max(200, Number(event.data.height)))}px`;
  });
  place.append(frame);
}
