(view) => {
  const page = view.document;
  const root = page.documentElement;
  const charts = [...page.querySelectorAll("svg.chart")].filter((chart) => chart.getBoundingClientRect().width > 0);
  const found = { width: view.innerWidth, scrollWidth: root.scrollWidth, bodyWidth: page.body.scrollWidth };
  page.querySelector("details").open = true;
  found.scrollWidthOpen = root.scrollWidth;

  // Elements that reach beyond the right edge, unless they are inside something that scrolls on its own.
  found.beyond = [...page.querySelectorAll("body *")]
    .filter((one) => !one.closest(".scroll") && one.getBoundingClientRect().right > view.innerWidth + 0.5)
    .map((one) => one.tagName + "." + one.getAttribute("class"));

  const chart = charts[0];
  const box = chart.getBoundingClientRect();
  const tip = () => (page.querySelector(".tip") ? page.querySelector(".tip").innerText : null);
  const point = (share) =>
    chart.dispatchEvent(new view.PointerEvent("pointermove", { clientX: box.left + share * box.width, clientY: box.top }));
  found.before = tip();
  point(0);
  found.first = tip();
  point(1);
  found.last = tip();
  const place = page.querySelector(".tip").getBoundingClientRect();
  found.tipInside = place.left >= 0 && place.right <= view.innerWidth;
  chart.dispatchEvent(new view.PointerEvent("pointerleave"));
  found.after = tip();
  const press = (key) => chart.dispatchEvent(new view.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  press("ArrowRight");
  found.keyFirst = tip();
  press("ArrowRight");
  found.keySecond = tip();
  press("ArrowLeft");
  press("Escape");
  found.keyEscape = tip();

  const shown = () => [...page.querySelectorAll("[data-against]")].filter((one) => !one.hidden).map((one) => one.dataset.against);
  found.against = [...new Set(shown())];
  page.querySelector("[data-choice=iteration]").click();
  found.againstThen = [...new Set(shown())];
  found.pressed = page.querySelector("[aria-pressed=true]").textContent;
  page.querySelector("[data-choice=seconds]").click();

  found.charts = charts.map((one) => one.getAttribute("aria-label"));
  found.chartWidth = box.width;
  found.smallestText = Math.min(
    ...[...chart.querySelectorAll("text")].map((one) => (parseFloat(view.getComputedStyle(one).fontSize) * box.width) / 420));

  // Contrast by WCAG: of text with what is behind it, and of lines with the card.
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = channels(colour).slice(0, 3)
      .map((value) => value / 255)
      .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, two) => {
    const [low, high] = [light(one), light(two)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = view.getComputedStyle(one).backgroundColor;
      if (channels(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  found.contrast = {};
  for (const choice of ["h1", ".status", ".origin", "dt", "dd", ".words p", ".hint", "td", "th", "summary", "footer",
    "[aria-pressed=true]", "[aria-pressed=false]"]) {
    const element = page.querySelector(choice);
    found.contrast[choice] = ratio(view.getComputedStyle(element).color, ground(element));
  }
  for (const choice of [".tick", ".label"]) {
    const element = chart.querySelector(choice);
    found.contrast[choice] = ratio(view.getComputedStyle(element).fill, ground(chart));
  }
  found.lines = {};
  for (const choice of [".line.s1", ".line.s2", ".line.s3", ".line.s4"]) {
    const element = page.querySelector(choice);
    if (element) found.lines[choice] = ratio(view.getComputedStyle(element).stroke, ground(chart));
  }
  found.ground = light(view.getComputedStyle(page.body).backgroundColor);
  return found;
}
