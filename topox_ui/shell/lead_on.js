export default function ({ data }) {
  const old = location.pathname.replace(/\/+$/, "");
  if (old.endsWith(`/${data.path}`)) return;
  const query = new URLSearchParams(location.search);
  for (const [key, word] of Object.entries(data.query)) query.set(key, word);
  const said = query.size ? `?${query}` : "";
  history.replaceState({}, "", old.slice(0, old.lastIndexOf("/") + 1) + data.path + said);
  // What Back and Forward do: Streamlit draws the page whose address is in view.
  window.dispatchEvent(new PopStateEvent("popstate"));
}
