"""The pages of the workbench, in the order of the navigation bar, and the right needed for each."""

from typing import NamedTuple

from stepsight.app.access.rights import Right


class Page(NamedTuple):
    """A page's name, its address, and the right to open it."""

    name: str
    path: str
    right: Right


PAGES = (
    Page("Score", "/", Right.SCORE),
    Page("Evidence", "/evidence", Right.READ),
    Page("Browse", "/browse", Right.READ),
    Page("Results", "/results", Right.READ),
    Page("Annotate", "/annotate", Right.ENTER),
    Page("Data", "/data", Right.READ),
    Page("Evaluators", "/evaluators", Right.READ),
    Page("Jobs", "/jobs", Right.READ),
    Page("People", "/people", Right.MANAGE),
)
