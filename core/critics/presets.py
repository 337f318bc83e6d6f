"""The presets of critics: how to ask for verdicts and how to parse the answers.

A preset is a YAML file with these keys, among others:

    version: 1                          incremented with every change
    reading: verdicts                   a name in `core.critics.verdict_parser.READINGS`
    system: …                           the first message, "" for none
    user: Check {problem} … {steps}     the question about the steps so far, of which there are `{count}`
    step: "Step {number}: {text}"       the form in which each step is written
    models: [thinkprm]                  the preset is the default for models whose names contain one of these
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, PositiveInt
from pydantic.dataclasses import dataclass

from stepsight.core.critics.verdict_parser import READINGS
from stepsight.core.errors import UserError
from stepsight.core.files.yaml_files import validate_yaml
from stepsight.core.paths import asset
from stepsight.core.validation import STRICT, ListOf, Record, checked, choice

OWN = "steps"
"""The preset for general-purpose models."""

ENDINGS = (".yaml", ".yml")
"""Endings of preset files."""

Message = dict[str, str]

_PLACE = re.compile(r"\{(\w+)\}")


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise UserError(
            f"{pattern!r} is not a valid pattern: {error}.", "Patterns are Python's regular expressions."
        ) from None


@dataclass(frozen=True, config=STRICT)
class Preset(Record):
    """The prompts and parameters for one kind of critic.

    `max_tokens` limits the length of an answer, and `written` is its usual length in tokens per step. Text that
    matches the pattern `strips` is removed from steps. `temperature` is zero for a critic that is asked each
    question only once.
    """

    version: PositiveInt
    reading: Annotated[str, choice(tuple(READINGS))]
    user: str
    step: str
    max_tokens: PositiveInt
    written: PositiveInt
    system: str = ""
    strips: Annotated[str, checked(_check_pattern)] = ""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    stop: ListOf[str] = ()
    models: ListOf[str] = ()

    @property
    def digest(self) -> str:
        """The SHA-256 of all fields of the preset, which is part of a critic's fingerprint."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    def messages(self, problem: str, steps: Sequence[str]) -> list[Message]:
        """Return the chat messages that ask about a problem and its first steps."""
        texts = [re.sub(self.strips, "", step).strip() if self.strips else step for step in steps]
        shown = [
            _filled(self.step, {"number": str(number), "text": text}) for number, text in enumerate(texts, start=1)
        ]
        question = _filled(self.user, {"problem": problem, "count": str(len(steps)), "steps": "\n".join(shown)})
        begun = [{"role": "system", "content": self.system}] if self.system else []
        return [*begun, {"role": "user", "content": question}]

    def stops(self, count: int) -> list[str]:
        """Return the stop strings for an answer about `count` steps."""
        return [_filled(text, {"next": str(count + 1)}) for text in self.stop]


def list_presets() -> list[str]:
    """Return the names of all presets, starting with StepSight's own."""
    names = sorted(path.stem for path in asset("critics").glob("*.yaml"))
    return [OWN, *(name for name in names if name != OWN)]


@cache
def read_preset(name: str) -> Preset:
    """Read the shipped preset called `name`, or the YAML file at the path `name`. Raises `UserError` if neither
    exists or the file is invalid."""
    if name in list_presets():
        return validate_yaml(Preset, asset("critics", f"{name}.yaml"))
    if name.endswith(ENDINGS):
        return validate_yaml(Preset, Path(name))
    raise UserError(
        f"there is no critic's preset {name!r}.", f"Choose one of: {', '.join(list_presets())}; or a YAML file."
    )


def preset_of(model: str) -> str:
    """Return the name of the preset for a model, or `OWN` if the model is not a known critic."""
    lower = model.lower()
    known = (name for name in list_presets() if any(part in lower for part in read_preset(name).models))
    return next(known, OWN)


def _filled(template: str, values: Mapping[str, str]) -> str:
    """Fill in all placeholders of a template in one pass, so that braces inside an inserted value are kept."""
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), template)
