"""Small files of candidates, and evaluators' scores of them."""

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


# Two problems of StrictPRMBench's form, with two candidates and one.
PLACES = (("a", 0, "5"), ("a", 1, "6"), ("b", 0, "5"))
CANDIDATES = [
    {
        "problem_id": problem, "candidate_index": number, "problem": f"What is {problem}?", "answer": "5",
        "steps": [f"{answer} it is.", f"So {answer}."], "extracted_answer": answer, "is_correct": answer == "5",
    }
    for problem, number, answer in PLACES
]  # fmt: skip
SCORES = [[0.5, 0.75], [1.0, 0.25], [0.25, 0.25]]


def score_rows(name="qwen_prm", scores=SCORES):
    return [
        {"benchmark": "gsm8k", "prm_name": name, "problem_id": problem, "candidate_index": number,
         "step_scores": theirs, "is_correct": answer == "5", "n_steps": 2}
        for (problem, number, answer), theirs in zip(PLACES, scores, strict=True)
    ]  # fmt: skip
