"""Write the record, or compare today's product with it:

python -m tests.record write [PART ...]
python -m tests.record compare [PART ...]
"""

import argparse
import difflib
import re
import sys
import tempfile
from pathlib import Path

from tests.record import commands, equations, pages, scores
from tests.record.scene import build

DATA = Path(__file__).parent / "data"
# Equations come last, since they add the benchmarks to the store.
PARTS = {"commands": commands, "pages": pages, "scores": scores, "equations": equations}
TOLERANCE = 1e-5
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d{1,2}\b)?")
_SHOWN = 40


def main():
    """Run the parts that are named, or all; returns 1 if anything differs from the record."""
    parser = argparse.ArgumentParser(prog="python -m tests.record", description="Record what the product does.")
    parser.add_argument("action", choices=["write", "compare"])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    args = parser.parse_args()
    differing = 0
    for name, text in _record([part for part in PARTS if part in args.parts or not args.parts]):
        path = DATA / name
        if args.action == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
        elif not path.is_file():
            differing += 1
            print(f"{name} is new")
        elif not _are_equal(before := path.read_text(encoding="utf-8")[:-1], text):
            differing += 1
            lines = difflib.unified_diff(before.splitlines(), text.splitlines(), name, "today", n=1, lineterm="")
            print("\n".join(line[:300] for line in list(lines)[:_SHOWN]))
    print(f"{differing} differ" if args.action == "compare" else f"written to {DATA}")
    return int(differing > 0)


def _record(parts):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "scene"
        place.mkdir()
        scene = build(place)
        for part in parts:
            yield from PARTS[part].record(scene)


def _are_equal(before, now):
    """True if the texts are equal, numbers within `TOLERANCE`: processors differ in the last digits."""
    numbers = [[float(number) for number in _NUMBER.findall(text)] for text in (before, now)]
    return _NUMBER.split(before) == _NUMBER.split(now) and all(
        abs(a - b) <= TOLERANCE for a, b in zip(*numbers, strict=True)
    )


if __name__ == "__main__":
    sys.exit(main())
