"""The pages of the workbench, in the order of the line at the top: name and address."""

PAGES = (
    ("Score", "/"),
    ("Evidence", "/evidence"),
    ("Browse", "/browse"),
    ("Results", "/results"),
    ("Relabel", "/relabel"),
    ("Jobs", "/jobs"),
)
