// A screen that the reader goes on to opens at its top, and whoever reads by keyboard or by ear is at
// its headline. The page that is opened first is left as the browser has it.
export default function ({ data }) {
  const main = document.querySelector('[data-testid="stMain"]');
  const before = main?.dataset.labScreen;
  if (!main || before === data.screen) return;
  main.dataset.labScreen = data.screen;
  if (before === undefined) return;
  main.scrollTo({ top: 0 });
  const head = main.querySelector("h1.headline");
  if (!head) return;
  head.tabIndex = -1;
  head.focus({ preventScroll: true });
}
