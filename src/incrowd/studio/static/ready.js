// Runs after the page's own script: before that, a click would be lost.

document.querySelector("main").inert = false;
