"""All benchmarks, each in a process of its own, and the manual's table of their figures.

    python -m tests.bench [NAME ...] [--short] [--write]

prints each figure beside what is asked for. `--short` measures the scorer alone, in less than a minute, and exits
with 1 if it misses half of what is asked for: a loss that is not the machine's. `--write` renews the table of
`docs/recorded/figures.md`.
"""

import argparse
import multiprocessing
import re
import sys
from dataclasses import replace

from tests.bench.figures import Figure, measure
from tests.conftest import ROOT

NAMES = ("start", "scorer", "evaluation", "browse", "page", "loading")
PAGE = ROOT / "docs" / "recorded" / "figures.md"
_TABLE = re.compile(r"^\| what \| asked \| measured \|\n(?:\|.*\n)+", re.MULTILINE)


def table(figures: list[Figure]) -> str:
    """Return figures as a table in Markdown; a value that misses its bound is bold."""
    rows = [
        (figure.what, figure.asked, figure.measured if figure.is_met else f"**{figure.measured}**")
        for figure in figures
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in [("what", "asked", "measured"), ("---",) * 3, *rows])


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser("python -m tests.bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    figures = []
    # What one benchmark holds in memory is not to slow the next.
    for name in args.names or (["scorer"] if args.short else NAMES):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            figures += pool.apply(measure, (name, args.short))
    print(table(figures), end="")
    if args.write:
        PAGE.write_text(_TABLE.sub(lambda _: table(figures), PAGE.read_text("utf-8")), "utf-8")
    halved = (replace(figure, bound=figure.bound / 2) for figure in figures if figure.at_least and figure.bound)
    return int(args.short and not all(figure.is_met for figure in halved))


if __name__ == "__main__":
    sys.exit(main())
