// Runs before the page is painted, so that a stored theme does not flash. No other state is kept.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const stored = localStorage.getItem("pointdrop-theme");
    if (stored === "dark" || stored === "light") root.dataset.theme = stored;
  } catch { /* storage is off: the system's preference holds */ }
})();
