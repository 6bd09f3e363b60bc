"use strict";
// Shows how much of the work for the page is done, and then the page. The server answers when there is something new.
(async () => {
    const bar = document.getElementById("progress");
    const text = document.getElementById("text");
    let known = 0;
    try {
        while (known < 1) {
            const answer = await fetch(`progress?known=${known}`);
            known = await answer.json();
            bar.value = known;
            text.textContent = `Reading the trace: ${Math.floor(known * 100)}%`;
        }
        location.reload();
    } catch {
        text.textContent = "The server has ended.";
    }
})();
