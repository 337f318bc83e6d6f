"""The wording that all stories share, read from `wording.yaml`."""

import random
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from stepsight.core.files.yaml_files import validate_yaml
from stepsight.core.validation import ListOf, Model

# The words after which the result may stand alone.
_TERSE = re.compile(
    r"(?:\b(?:is|are|be|gives|get|has|have|equals|remain|remains|makes|leaves|takes|so|then)|[,:]) \{w?eq\}"
)


class _Wording(Model):
    templates: dict[str, ListOf[str]]
    endings: dict[str, ListOf[ListOf[str]]]
    words: dict[str, ListOf[str]]


@cache
def _wording() -> _Wording:
    return validate_yaml(_Wording, Path(__file__).with_suffix(".yaml"))


def templates(name: str) -> tuple[str, ...]:
    """Return the templates of a name, such as `says`."""
    return _wording().templates[name]


def ending(name: str, passes: bool, rng: random.Random, **numbers: object) -> str:
    """Choose the end of a check that passes or fails, and fill in the numbers that it compares."""
    return rng.choice(_wording().endings[name])[not passes].format(**numbers)


def word_lists() -> Mapping[str, tuple[str, ...]]:
    """Return the lists of words that stories refer to by name."""
    return _wording().words


def terse(template: str) -> str:
    """Return the template with the equation replaced by its result, if the sentence allows that."""
    if "{res}" in template or "{wres}" in template or not _TERSE.search(template):
        return template
    return template.replace("eq}", "res}")
