"use strict";
// Buttons that copy a text of this page. The texts stand in the page as JSON; without this script
// the buttons stay hidden.
(() => {
  const texts = JSON.parse(document.getElementById("copies").textContent);
  const status = document.getElementById("copied");

  // pages that were opened from a file may have no clipboard: a selection is copied the old way
  function selected(text) {
    const area = document.createElement("textarea");
    area.value = text;
    area.readOnly = true;
    area.className = "aside";
    area.tabIndex = -1;
    document.body.append(area);
    area.select();
    let done = false;
    try {
      done = document.execCommand("copy");
    } catch (reason) {
      // said by the return value
    }
    area.remove();
    return done;
  }

  async function copied(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch (reason) {
      return selected(text);
    }
  }

  function show(button, said) {
    const label = button.firstElementChild;
    const own = label.dataset.own || label.textContent;
    label.dataset.own = own;
    button.style.minWidth = button.offsetWidth + "px";
    label.textContent = said;
    clearTimeout(button.timer);
    button.timer = setTimeout(() => { label.textContent = own; }, 2000);
    status.textContent = "";
    setTimeout(() => { status.textContent = said; }, 50);
  }

  for (const button of document.querySelectorAll("button[data-copy]")) {
    if (typeof texts[button.dataset.copy] !== "string") continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const done = await copied(texts[button.dataset.copy]);
      button.focus(); // the selection had it
      show(button, done ? status.dataset.done : status.dataset.failed);
    });
  }
})();
