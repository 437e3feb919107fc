// A grid with row and column headers: arrow keys move, space marks a cell, digits fill it in. A
// symmetric grid marks both cells of a pair. It writes the whole grid, as rows of whole numbers.
export default function ({ data, parentElement, setStateValue }) {
  const box = parentElement.querySelector(".grid");
  const drawn = JSON.stringify([data.rows, data.columns, data.marks, data.symmetric, data.locked]);
  if (box.dataset.drawn === drawn) return;
  box.dataset.drawn = drawn;
  const cells = data.cells.map((row) => [...row]);
  const many = data.columns.length;
  const closed = (i, j) => data.locked || (data.symmetric && i === j);
  const words = (i, j) => `${data.rows[i]}, ${data.columns[j]}`;
  const at = (i, j) => box.querySelector(`[data-cell="${i},${j}"]`);
  let timer = null;
  const send = () => {
    clearTimeout(timer);
    timer = setTimeout(() => setStateValue("cells", cells.map((row) => [...row])), 60);
  };
  const show = (i, j) => {
    const one = at(i, j);
    if (!one) return;
    if (data.marks) {
      one.setAttribute("aria-checked", String(cells[i][j] === 1));
      one.textContent = cells[i][j] === 1 ? "✓" : "";
    } else {
      one.value = cells[i][j] === null ? "" : String(cells[i][j]);
    }
  };
  const put = (i, j, value) => {
    cells[i][j] = value;
    show(i, j);
    if (data.symmetric) {
      cells[j][i] = value;
      show(j, i);
    }
    send();
  };
  const go = (i, j) => {
    const one = at(Math.min(Math.max(i, 0), data.rows.length - 1), Math.min(Math.max(j, 0), many - 1));
    if (!one) return;
    box.querySelectorAll("[data-cell]").forEach((other) => { other.tabIndex = other === one ? 0 : -1; });
    one.focus();
  };
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const table = document.createElement("table");
  table.setAttribute("aria-label", data.label);
  const head = table.createTHead().insertRow();
  head.appendChild(document.createElement("td"));
  data.columns.forEach((name) => {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    head.appendChild(cell);
  });
  const body = table.createTBody();
  data.rows.forEach((name, i) => {
    const row = body.insertRow();
    const first = document.createElement("th");
    first.scope = "row";
    first.textContent = name;
    row.appendChild(first);
    data.columns.forEach((_, j) => {
      const one = document.createElement(data.marks ? "button" : "input");
      one.dataset.cell = `${i},${j}`;
      one.setAttribute("aria-label", words(i, j));
      one.tabIndex = i === 0 && j === 0 ? 0 : -1;
      if (data.marks) {
        one.type = "button";
        one.setAttribute("role", "checkbox");
        one.addEventListener("click", () => { if (!closed(i, j)) put(i, j, cells[i][j] === 1 ? 0 : 1); });
      } else {
        one.inputMode = "numeric";
        one.maxLength = 3;
        one.addEventListener("input", () => {
          const digits = one.value.replace(/\D/g, "");
          put(i, j, digits === "" ? null : Number(digits));
        });
      }
      if (closed(i, j)) {
        one.setAttribute("aria-disabled", "true");
        if (!data.marks) one.readOnly = true;
      }
      one.addEventListener("keydown", (event) => {
        const move = moves[event.key];
        if (!move) return;
        event.preventDefault();
        go(i + move[0], j + move[1]);
      });
      row.insertCell().appendChild(one);
    });
  });
  box.replaceChildren(table);
  cells.forEach((row, i) => row.forEach((_, j) => show(i, j)));
}
