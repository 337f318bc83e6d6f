"""Converting score rows that version 0.1.0 of `stepsight score` wrote to today's record.

    {"id": "1", "evaluator": "mini-bidir", "mode": "online",
     "steps": [{"neg": 0.14, "neu": 0.0, "pos": 0.86, "validity": 0.86, "redundancy": 0.0}],
     "solution": {"validity": 0.86, "redundancy": 0.0, "valid": true, "redundant": false}}

`steps` has an entry per sub-step in the row's own mode; in hindsight mode, these are the offline scores. `step_of`,
if present, gives the 0-based step of each entry. An entry of an evaluator in words is `{"valid": true}` or null.
"""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.judgment_record import FORMAT
from stepsight.core.scores import Outputs

_KEYS = {"evaluator", "mode", "steps", "solution"}
_KEPT = ("id", "evaluator", "rationale", "spent", "hindsight")
# Version 0.1.0 wrote neither thresholds nor a fingerprint.
_UNKNOWN = {"thresholds": {"validity": 0.5, "redundancy": 0.15}, "fingerprint": ""}


def is_earlier(row: Mapping[str, Any]) -> bool:
    """True if a row is a judgment in the form of version 0.1.0."""
    return (
        row.keys() >= _KEYS
        and not {"format", "problem"} & row.keys()
        and isinstance(row["steps"], list)
        and isinstance(row["solution"], dict)
    )


def upgraded(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the `JudgmentRecord` for a row in the form of version 0.1.0. The caller validates them.

    Raises `UserError` if the entries of `steps` have no known form, or if `step_of` does not fit them.
    """
    outputs, mode = _outputs(row), row["mode"]
    if outputs.in_words and mode == Mode.HINDSIGHT:
        # The triangle of an evaluator in words was not written.
        mode = Mode.OFFLINE.value
    both = {key: row[key] for key in (Mode.ONLINE.value, Mode.OFFLINE.value) if key in row}
    both.setdefault(Mode.ONLINE.value if mode == Mode.ONLINE else Mode.OFFLINE.value, row)
    places = _places(row)
    valid = row["solution"].get("valid")
    return {
        **_UNKNOWN,
        **{key: row[key] for key in _KEPT if key in row},
        **{key: _mode_fields(one, places) for key, one in both.items()},
        "format": FORMAT,
        "mode": mode,
        "outputs": outputs.value,
        "solution_score": float(valid) if outputs.in_words and isinstance(valid, bool) else None,
    }


def _outputs(row: Mapping[str, Any]) -> Outputs:
    keys = {key for one in row["steps"] if isinstance(one, dict) for key in one}
    if "neg" in keys:
        return Outputs.THREE_WAY
    if "validity" in keys:
        return Outputs.VALIDITY
    if not keys - {"valid"}:
        return Outputs.CHECKS if row["evaluator"] == "equations" else Outputs.VERDICT
    raise UserError("the field 'steps' holds no scores.", "Score the file again.")


def _places(row: Mapping[str, Any]) -> list[dict[str, int]]:
    """Return the step and the sub-step of each entry, counted from 1."""
    count = len(row["steps"])
    owners = row.get("step_of", list(range(count)))
    if not isinstance(owners, list) or len(owners) != count or not all(type(one) is int for one in owners):
        raise UserError(f"the field 'step_of' does not name the step of each of {count} scores.", "Score it again.")
    return [
        {"step": step + 1, "substep": number}
        for step, same in groupby(owners)
        for number, _ in enumerate(same, start=1)
    ]


def _mode_fields(scores: Any, places: list[dict[str, int]]) -> Any:
    """Return the scores of one mode with their places. Malformed scores are returned unchanged and fail validation
    later."""
    if not isinstance(scores, dict) or not isinstance(scores.get("steps"), list):
        return scores
    steps = scores["steps"]
    numbered = [
        (one or {}) | place if isinstance(one, dict | None) else one
        for one, place in zip(steps, places, strict=False)
    ]
    return {"steps": numbered + steps[len(numbered) :], "solution": scores.get("solution")}
