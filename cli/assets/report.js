/* report.js - what every page of bjepa does: the switch between light and dark, and printing. */
(() => {
    "use strict";
    const root = document.documentElement;
    const themeButton = document.getElementById("theme");

    const systemDark = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme || (systemDark.matches ? "dark" : "light")) === "dark";
    const sayTheme = () =>
        themeButton.setAttribute("aria-label", isDark() ? "Switch to light" : "Switch to dark");
    themeButton.addEventListener("click", () => {
        root.dataset.theme = isDark() ? "light" : "dark";
        try {
            localStorage.setItem("bjepa-theme", root.dataset.theme);
        } catch (e) { /* no storage: it lasts as long as the page */ }
        sayTheme();
    });
    systemDark.addEventListener("change", sayTheme);
    sayTheme();

    /* Paper has no buttons: what is folded is opened for it, and folded again. */
    let opened = [];
    addEventListener("beforeprint", () => {
        opened = [...document.querySelectorAll("details:not([open])")];
        for (const d of opened) d.open = true;
    });
    addEventListener("afterprint", () => {
        for (const d of opened) d.open = false;
    });
})();
