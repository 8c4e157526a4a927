// Draws every `.plotly-figure` from the JSON that it holds, and follows light and dark.
document.addEventListener("DOMContentLoaded", () => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const clear = new Set(["rgba(0,0,0,0)", "rgba(0, 0, 0, 0)", "transparent"]);

  // A figure with a background of its own keeps its colours: they were chosen for it.
  const followsPage = (layout) =>
    clear.has(layout.paper_bgcolor ?? layout.template?.layout?.paper_bgcolor);
  const textColour = () =>
    getComputedStyle(document.documentElement).getPropertyValue("--text").trim();

  // A drawing is as wide as it was on screen; with a view box, paper can have it in another size.
  const scalable = (holder) => {
    for (const svg of holder.querySelectorAll(".main-svg")) {
      svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
    }
  };

  const draw = (holder) => {
    const figure = JSON.parse(holder.querySelector("script").textContent);
    const thumbnail = holder.classList.contains("thumbnail");
    const layout = { ...figure.layout };
    const follows = followsPage(layout);
    if (follows) layout.font = { ...layout.font, color: textColour() };
    if (thumbnail) layout.width ??= 1000;
    const config = {
      displaylogo: false,
      responsive: !thumbnail,
      showSendToCloud: false,
      staticPlot: thumbnail,
    };
    Plotly.newPlot(holder, figure.data, layout, config).then(() => {
      scalable(holder);
      holder.on("plotly_afterplot", () => scalable(holder));
    });
    if (follows) {
      holder.classList.add("follows-page");
      dark.addEventListener("change", () =>
        Plotly.relayout(holder, { "font.color": textColour() }));
    }
  };

  // A page of many thumbnails draws each as it comes into view, and all of them for paper.
  const waiting = new Set();
  const drawOnce = (holder) => {
    if (waiting.delete(holder)) draw(holder);
  };
  const whenSeen = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((entry) => entry.isIntersecting)) drawOnce(entry.target);
  }, { rootMargin: "400px" });
  window.addEventListener("beforeprint", () => waiting.forEach(drawOnce));

  for (const holder of document.querySelectorAll(".plotly-figure")) {
    if (holder.classList.contains("thumbnail")) {
      waiting.add(holder);
      whenSeen.observe(holder);
    } else {
      draw(holder);
    }
  }
});
