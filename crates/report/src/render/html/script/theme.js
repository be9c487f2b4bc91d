// Light and dark: as the reader's system is set, until the button says otherwise. What was chosen is kept where the
// browser allows it (a file opened from disk may have no storage).
const root = document.documentElement;
const themeButton = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");
const stored = (use) => { try { return use(localStorage); } catch { return null; } };
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
const nameTheme = () => { themeButton.textContent = isDark() ? "Light" : "Dark"; };
const kept = stored((storage) => storage.getItem("hosepipe-theme"));
if (kept === "light" || kept === "dark") root.dataset.theme = kept;
themeButton.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  stored((storage) => storage.setItem("hosepipe-theme", root.dataset.theme));
  nameTheme();
});
system.addEventListener("change", nameTheme);
nameTheme();
