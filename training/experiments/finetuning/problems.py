"""Problems with their answers, such as MATH-500: one object a line.

{"problem": "How many positive whole-number divisors does 196 have?", "answer": "9"}
"""

import hashlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files import DATA_VARIABLE, data_files
from stepsight.core.jsonl import open_input, read_rows
from stepsight.storage.importers.fields import located, text

_DEFAULT = Path("math500") / "test.jsonl"


@dataclass(frozen=True)
class Problem:
    """`answer` is LaTeX, without `$`."""

    text: str
    answer: str


@dataclass(frozen=True)
class Problems:
    """The problems of a file, `sha256` being of the file."""

    name: str
    items: tuple[Problem, ...]
    sha256: str

    def __len__(self) -> int:
        return len(self.items)

    def as_json(self) -> dict[str, Any]:
        """What they are, without their texts; `constant` is what always giving the answer that most of them have
        would reach."""
        answer, count = Counter(problem.answer for problem in self.items).most_common(1)[0]
        constant = {"answer": answer, "right": count}
        return {"name": self.name, "count": len(self), "sha256": self.sha256, "constant": constant}


def read_problems(path: Path) -> Problems:
    """Read a file. Raises `UserError` naming the line where a problem or its answer is missing."""
    found = []
    with open_input(path) as file:
        for number, row in read_rows(file, str(path)):
            with located(f"{path} line {number}"):
                found.append(Problem(text(row, "problem"), text(row, "answer")))
    if not found:
        raise UserError(f"{path}: there is no problem.", "Write one object with problem and answer a line.")
    return Problems(
        f"{path.resolve().parent.name}/{path.name}", tuple(found), hashlib.sha256(path.read_bytes()).hexdigest()
    )


def problems_path(given: Path | None, root: Path = Path()) -> Path:
    """The file that is given, in `root` or in the folder of data; without one, MATH-500 in that folder.

    Raises `UserError` where it is not there.
    """
    try:
        return data_files(str(given or _DEFAULT), root)[0][1]
    except UserError:
        if given is not None:
            raise
        hint = f"Give --problems FILE, or put {_DEFAULT} into the folder that {DATA_VARIABLE} names."
        raise UserError("the problems of MATH-500 are not here.", hint) from None
