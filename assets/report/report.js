drawFigures(document, { displayModeBar: "hover" }).then(() => document.documentElement.setAttribute("data-drawn", ""));
