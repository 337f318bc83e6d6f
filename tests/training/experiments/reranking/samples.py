"""A small file of candidates, and an evaluator for them."""

import json

ROWS = [
    {"problem": "What is 2 + 3?", "solution": "2 + 3 = 6.\nSo 6.", "answer": "6", "gold": "5", "id": "a"},
    {"problem": "What is 4 + 1?", "steps": ["4 + 1 = 5."], "answer": 5, "gold": 5},
    {"problem": "What is 2 + 3?", "steps": ["2 + 3 = 5.", ["So the answer", "is 5."]], "answer": "5.0"},
    {"problem": "What is 2 + 3?", "solution": "So the answer is 5.\n#### 5"},
    {"problem": "What is 2 + 3?", "solution": "Check: 5 - 3 = 2."},
]
"""Two problems, four candidates and one; the answers of the first are 6, 5, 5 and none."""


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
