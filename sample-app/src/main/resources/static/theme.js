// The chosen theme, before anything is drawn. Where the browser keeps nothing, the theme is that of the system.
try {
  const chosen = localStorage.getItem('theme');
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // No storage.
}
