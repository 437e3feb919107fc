// A slide that is higher than the window has its type made smaller, step by step, until it fits: words of another
// language are longer. What is on a slide comes bit by bit, so it is looked at again for a while.
export default function ({ data }) {
  const main = document.querySelector('[data-testid="stMain"]'), root = document.documentElement;
  if (!main) return;
  const fit = () => {
    root.style.fontSize = "";
    if (innerWidth <= 640 || innerHeight <= 500) return; // a phone scrolls
    let px = parseFloat(getComputedStyle(root).fontSize);
    while (main.scrollHeight > main.clientHeight && px > data.least) {
      px = Math.max(data.least, 0.96 * px);
      root.style.fontSize = `${px}px`;
    }
  };
  const timers = [0, 100, 300, 800].map((ms) => setTimeout(fit, ms));
  addEventListener("resize", fit);
  return () => {
    timers.forEach(clearTimeout);
    removeEventListener("resize", fit);
    root.style.fontSize = "";
  };
}
