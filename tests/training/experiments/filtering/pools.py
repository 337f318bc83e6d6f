"""Small pools."""

import json


def sums(count):
    """Rows with MMIQC's field names, no two alike."""
    return [
        {
            "instruction": f"What is {i} + 3?",
            "output": f"{i} + 3 = {i + 3}.\nSo the answer is {i + 3}.",
            "source": "é",
        }
        for i in range(count)
    ]


def write_rows(path, rows):
    """One line each; what is text already is written as it stands."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
