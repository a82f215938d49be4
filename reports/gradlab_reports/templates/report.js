// What the page adds where scripts run: numbers at the pointer, and one recurrence at a time.
(function () {
  "use strict";
  const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

  function power(exponent) {
    const digits = String(Math.abs(exponent)).replace(/\d/g, (digit) => SUPERSCRIPTS[digit]);
    return "10" + (exponent < 0 ? "⁻" : "") + digits;
  }

  // A number from its log10, which never leaves the range of floats.
  function spelled(log10) {
    if (log10 === null || log10 === undefined) return "not measured";
    if (log10 === "-inf") return "exactly 0";
    if (log10 === "inf") return "infinite";
    if (log10 > -4 && log10 < 4) return Number(Math.pow(10, log10).toPrecision(3)).toString();
    let exponent = Math.floor(log10);
    let mantissa = Math.pow(10, log10 - exponent).toPrecision(3);
    if (Number(mantissa) >= 10) { mantissa = "1.00"; exponent += 1; }
    return mantissa + " × " + power(exponent);
  }

  function clamped(value, low, high) { return Math.min(Math.max(value, low), high); }

  function nearest(values, wanted) {
    let best = 0;
    values.forEach((value, index) => {
      if (Math.abs(value - wanted) < Math.abs(values[best] - wanted)) best = index;
    });
    return best;
  }

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  function slider(label, length, onInput) {
    const row = element("label", "slider", label);
    const range = element("input");
    range.type = "range";
    range.min = 0;
    range.max = length - 1;
    range.value = 0;
    range.addEventListener("input", () => onInput(Number(range.value)));
    row.append(range);
    return { row, range };
  }

  // Place of the pointer in the picture, as parts of it from its upper left corner.
  function place(event, drawing) {
    const box = drawing.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }

  function setUp(figure, numbers) {
    const picture = figure.querySelector(".picture");
    const drawing = picture.querySelector("svg, img");
    const [left, top, right, bottom] = numbers.box;
    const frame = element("div", "drawing");
    drawing.replaceWith(frame);
    const marker = element("div", "marker");
    marker.hidden = true;
    frame.append(drawing, marker);
    const panel = element("div", "readout");
    const words = element("output");
    picture.after(panel);

    function mark(x, y) {
      marker.hidden = false;
      marker.classList.toggle("point", y !== null);
      marker.style.left = 100 * x + "%";
      marker.style.top = 100 * (y === null ? top : y) + "%";
      marker.style.height = y === null ? 100 * (bottom - top) + "%" : "";
    }
    const across = (value) => left +
      (right - left) * (value - numbers.x[0]) / (numbers.x[1] - numbers.x[0]);
    const valueAt = (x) => numbers.x[0] +
      (numbers.x[1] - numbers.x[0]) * (x - left) / (right - left);
    const show = numbers.kind === "lines"
      ? lines(numbers, panel, words, mark, across, valueAt)
      : map(numbers, panel, words, mark, across, valueAt);
    panel.append(words);
    frame.addEventListener("pointermove", (event) => show(...place(event, drawing)));
    frame.addEventListener("pointerdown", (event) => show(...place(event, drawing)));
  }

  function lines(numbers, panel, words, mark, across, valueAt) {
    function tell(index) {
      const lag = numbers.lag[index];
      mark(across(lag), null);
      range.value = index;
      const parts = numbers.lines.map((line) => line.name + " " +
        (line.text ? line.text[index] : spelled(line.log10[index])));
      range.setAttribute("aria-valuetext", word.toLowerCase() + " " + lag);
      words.textContent = word + " " + lag + ": " + parts.join(" · ");
    }
    const word = numbers.word || "Lag";
    const { row, range } = slider(word, numbers.lag.length, tell);
    panel.append(row);
    return (x) => tell(nearest(numbers.lag, valueAt(x)));
  }

  function map(numbers, panel, words, mark, across, valueAt) {
    const [, top, , bottom] = numbers.box;
    const state = { row: numbers.t.length - 1, column: 0 };
    function tell() {
      const row = numbers.log10[state.row];
      state.column = clamped(state.column, 0, Math.max(row.length - 1, 0));
      const k = state.column * numbers.stride;
      const t = numbers.t[state.row];
      const y = (state.row * numbers.down + 0.5) / numbers.count;
      mark(across(k), bottom - (bottom - top) * y);
      rows.range.value = state.row;
      columns.range.value = state.column;
      rows.range.setAttribute("aria-valuetext", "t = " + t);
      columns.range.setAttribute("aria-valuetext", "k = " + k);
      words.textContent = "From t = " + t + " back to k = " + k + " (lag " + (t - k) + "): " +
        spelled(row[state.column]);
    }
    const rows = slider("t", numbers.t.length, (value) => { state.row = value; tell(); });
    const widest = Math.max(...numbers.log10.map((row) => row.length));
    const columns = slider("k", widest, (value) => { state.column = value; tell(); });
    panel.append(rows.row, columns.row);
    return (x, y) => {
      const height = (bottom - y) / (bottom - top);
      const row = Math.floor(height * numbers.count / numbers.down);
      state.row = clamped(row, 0, numbers.t.length - 1);
      state.column = Math.round(valueAt(x) / numbers.stride);
      tell();
    };
  }

  function setUpSwitch() {
    const nav = document.querySelector("nav");
    const sections = [...document.querySelectorAll("section.recurrence")];
    if (!nav || sections.length < 2) return;
    const row = element("label", "switch", "Show ");
    const choice = element("select");
    choice.append(new Option("all recurrences", ""));
    sections.forEach((section) => {
      choice.append(new Option(section.querySelector("h2").textContent, section.id));
    });
    const only = (id) => {
      choice.value = id;
      sections.forEach((section) => { section.hidden = id !== "" && section.id !== id; });
    };
    choice.addEventListener("change", () => only(choice.value));
    nav.addEventListener("click", (event) => {
      const link = event.target.closest("a");
      if (link && choice.value !== "") only(link.hash.slice(1));
    });
    row.append(choice);
    nav.append(row);
  }

  document.querySelectorAll("figure > script.numbers-below").forEach((holder) => {
    setUp(holder.parentElement, JSON.parse(holder.textContent));
  });
  setUpSwitch();
})();
