"""Variants of solutions as objects for JSON, which are read together with their originals.

An object has `steps`, `targets`, `said`, `equation` and `problem`, as in `Variant`. An entry of `steps` is the
place of an unchanged step in the original, or a place (null for an inserted step) and a new text. `problem` is null
if it did not change. So unchanged text is never written twice.
"""

from collections.abc import Mapping
from typing import Any

from stepsight.core.stress.variant import Variant
from stepsight.core.trace import Trace


def to_content(original: Trace, variant: Variant) -> dict[str, Any]:
    """Return a variant as an object for JSON."""
    texts = original.substeps
    steps = [
        origin if origin is not None and texts[origin] == text else [origin, text]
        for origin, text in zip(variant.origins, variant.trace.substeps, strict=True)
    ]
    return {
        "steps": steps,
        "targets": list(variant.targets),
        "said": variant.said,
        "equation": variant.equation,
        "problem": None if variant.trace.problem == original.problem else variant.trace.problem,
    }


def from_content(original: Trace, content: Mapping[str, Any]) -> Variant:
    """Return the variant that `to_content` wrote. Raises `ValueError` if it does not fit the original."""
    try:
        steps = [(one, original.substeps[one]) if isinstance(one, int) else tuple(one) for one in content["steps"]]
        origins, texts = zip(*steps, strict=True)
        problem = original.problem if content["problem"] is None else content["problem"]
        changed = Trace.of(problem, texts, id=original.id)
        return Variant(changed, origins, tuple(content["targets"]), content["said"], content["equation"])
    except (LookupError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
