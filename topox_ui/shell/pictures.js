// Saves a figure of the page: plotly's own camera, which the page hides, draws it in the form that the button
// names, as it stands there on the colour of the page, or on its own paper at the size that the button names.
// It listens to the document, as terms.js does.
(() => {
  if (window.topoxPictures) return;
  window.topoxPictures = true;
  const DOTS = 3; // a pixel becomes three by three: a figure of 1,000 px is 25 cm at 300 dots an inch
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("button[data-picture]");
    if (!button) return;
    const { picture, form, name, width, height } = button.dataset;
    const chart = document.querySelector(`.st-key-${CSS.escape(picture)} .js-plotly-plot`);
    const camera = chart && chart.querySelector(".modebar-btn");
    if (!camera) return;
    const before = chart.layout.paper_bgcolor;
    const size = width ? { width: Number(width), height: Number(height) } : {};
    chart._context.toImageButtonOptions = { format: form, filename: name, scale: form === "png" ? DOTS : 1, ...size };
    if (!width) chart.layout.paper_bgcolor = getComputedStyle(document.querySelector(".stApp")).backgroundColor;
    camera.click(); // what it draws is copied before this line ends
    chart.layout.paper_bgcolor = before;
  });
})();
