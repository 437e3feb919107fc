export default function ({ data }) {
  const old = location.pathname.replace(/\/+$/, "");
  if (old.endsWith(`/${data.path}`)) return;
  // The view first, as everywhere: the same address in another order would count as another one.
  const query = new URLSearchParams(data.query);
  for (const [key, word] of new URLSearchParams(location.search)) if (!query.has(key)) query.set(key, word);
  const said = query.size ? `?${query}` : "";
  history.replaceState({}, "", old.slice(0, old.lastIndexOf("/") + 1) + data.path + said);
  // What Back and Forward do: Streamlit draws the page whose address is in view.
  window.dispatchEvent(new PopStateEvent("popstate"));
}
