// In a narrow window the menu lies over the page: a click on one of its links folds it again.
(() => {
  if (window.topoxMenu) return;
  window.topoxMenu = true;
  const NARROW = 768; // px, below which Streamlit lays the menu over the page
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element && event.target.closest('[data-testid="stSidebar"] a[href]');
    if (!link || window.innerWidth >= NARROW) return;
    setTimeout(() => {
      document.querySelector('[data-testid="stSidebar"][data-collapsed="false"] [data-testid="stSidebarCollapseButton"] button')?.click();
    });
  });
})();
