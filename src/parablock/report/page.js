"use strict";
// Values under the pointer or finger, or chosen with the arrow keys.
for (const chart of document.querySelectorAll("svg.chart")) {
  const places = JSON.parse(chart.dataset.hover);
  if (!places.length) continue;
  const frame = chart.parentElement;
  const make = (name, kind) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    element.setAttribute("class", kind);
    return element;
  };
  const marks = [];
  let tip = null;
  let at = -1;

  const hide = () => {
    for (const mark of marks.splice(0)) mark.remove();
    if (tip) tip.remove();
    tip = null;
    at = -1;
  };

  const show = (index) => {
    if (index === at) return;
    hide();
    at = index;
    const [x, note, values] = places[index];
    const box = chart.viewBox.baseVal;
    const guide = make("line", "guide");
    for (const [name, value] of Object.entries({ x1: x, x2: x, y1: 12, y2: box.height - 42 })) {
      guide.setAttribute(name, value);
    }
    marks.push(guide);
    tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("role", "status");
    tip.append(note);
    for (const [y, name, value] of values) {
      const spot = make("circle", "spot");
      for (const [key, number] of Object.entries({ cx: x, cy: y, r: 5 })) spot.setAttribute(key, number);
      marks.push(spot);
      const line = document.createElement("div");
      const strong = document.createElement("b");
      strong.textContent = value;
      line.append(name + " ", strong);
      tip.append(line);
    }
    chart.append(...marks);
    frame.append(tip);
    const across = (x / box.width) * chart.clientWidth;
    const left = across > chart.clientWidth / 2 ? across - tip.offsetWidth - 12 : across + 12;
    tip.style.left = Math.max(0, Math.min(left, frame.clientWidth - tip.offsetWidth)) + "px";
  };

  const nearest = (event) => {
    const box = chart.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
    let best = 0;
    places.forEach((place, index) => {
      if (Math.abs(place[0] - x) < Math.abs(places[best][0] - x)) best = index;
    });
    show(best);
  };

  chart.addEventListener("pointermove", nearest);
  chart.addEventListener("pointerdown", nearest);
  chart.addEventListener("pointerleave", hide);
  chart.addEventListener("blur", hide);
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") hide();
    if (!step) return;
    event.preventDefault();
    const from = at < 0 ? (step > 0 ? -1 : places.length) : at;
    show(Math.max(0, Math.min(places.length - 1, from + step)));
  });
}

// Against seconds or against iterations.
const charts = document.querySelector(".charts");
if (charts && document.querySelector("[data-against]")) {
  const control = document.createElement("div");
  control.className = "switch";
  control.setAttribute("role", "group");
  control.setAttribute("aria-label", "Draw the charts against");
  for (const [name, label] of [["seconds", "Time"], ["iteration", "Iteration"]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.dataset.choice = name;
    button.setAttribute("aria-pressed", String(name === "seconds"));
    button.addEventListener("click", () => {
      for (const other of control.children) other.setAttribute("aria-pressed", String(other === button));
      for (const one of document.querySelectorAll("[data-against]")) one.hidden = one.dataset.against !== name;
    });
    control.append(button);
  }
  charts.before(control);
}

// Paper shows everything.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
