"""The settings of a critic, as given in its address, and the presets: how to ask for verdicts and how to parse the
answers.

    critic:http://HOST:8000/v1#MODEL
    critic:http://HOST:8000/v1#launch/ThinkPRM-7B,samples=4

The options are `preset`, `samples`, `temperature`, `max_tokens`, `schema`, `requests` and `timeout`. A preset is a
YAML file with these keys, among others:

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
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field, PositiveInt
from pydantic.dataclasses import dataclass as record

from stepsight.core.critics.verdict_parser import READINGS
from stepsight.core.errors import UserError, located
from stepsight.core.files.yaml_files import validate_yaml
from stepsight.core.inference_servers.address import CRITIC, ServerAddress, parse_address
from stepsight.core.inference_servers.server import AT_ONCE, SECONDS
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


@record(frozen=True, config=STRICT)
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
            _fill(self.step, {"number": str(number), "text": text}) for number, text in enumerate(texts, start=1)
        ]
        question = _fill(self.user, {"problem": problem, "count": str(len(steps)), "steps": "\n".join(shown)})
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": question}]

    def stops(self, count: int) -> list[str]:
        """Return the stop strings for an answer about `count` steps."""
        return [_fill(text, {"next": str(count + 1)}) for text in self.stop]


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
        f"there is no preset {name!r} for critics.", f"Choose a YAML file or one of: {', '.join(list_presets())}."
    )


def preset_of(model: str) -> str:
    """Return the name of the preset for a model, or `OWN` if the model is not a known critic."""
    lower = model.lower()
    names = (name for name in list_presets() if any(part in lower for part in read_preset(name).models))
    return next(names, OWN)


def _fill(template: str, values: Mapping[str, str]) -> str:
    """Fill in all placeholders of a template in one pass, so that braces inside an inserted value are kept."""
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), template)


# The last ones determine how requests are sent, and do not change the critic's answers.
_KEPT = ("preset", "samples", "temperature", "max_tokens")
_OPTIONS = (*_KEPT, "schema", "requests", "timeout")

SCHEMAS = ("auto", "yes", "no")
"""Values of `schema`, which has the server constrain the critic to a JSON schema; auto tries it once."""

# The default temperature for several samples; at 0 they would all be the same.
_SAMPLING_TEMPERATURE = 0.7
_MOST_SAMPLES, _MOST_TOKENS, _MOST_REQUESTS, _MAX_TEMPERATURE = 1000, 1_000_000, 1024, 2.0
_LONGEST = 24 * 3600
# Incremented whenever the same answers lead to a different judgment than before.
_VERSION = 1


@dataclass(frozen=True)
class Settings:
    """The settings of a critic.

    Each question is asked `samples` times at `temperature`, with at most `max_tokens` tokens per answer. At most
    `requests` requests are in flight at once, and each times out after `timeout` seconds.
    """

    address: ServerAddress
    preset_name: str
    samples: int
    temperature: float
    max_tokens: int
    schema: str
    requests: int
    timeout: float

    @property
    def preset(self) -> Preset:
        return read_preset(self.preset_name)

    @property
    def name(self) -> str:
        """The address with its options in a fixed order, so that critics with equal settings have equal names."""
        options = {name: self.address.options[name] for name in _KEPT if name in self.address.options}
        if self.preset_name == preset_of(self.address.model):
            options.pop("preset", None)
        elif self.preset_name.endswith(ENDINGS):
            # A user's folders stay private; the fingerprint covers the file's content.
            options["preset"] = Path(self.preset_name).stem
        if self.samples == 1:
            options.pop("samples", None)
        return str(replace(self.address, options=options))

    @property
    def fingerprint(self) -> str:
        """A hash of the server, the model, the full preset and the sampling settings."""
        parts: list[object] = [_VERSION, self.address.url, self.address.model, self.preset.digest]
        parts += [self.samples, self.temperature, self.max_tokens]
        return f"{CRITIC}:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"


def read_settings(address: ServerAddress) -> Settings:
    """Read the settings from the options of an address. Raises `UserError` if an option is unknown or a value is
    invalid."""
    address.check_options(_OPTIONS)
    options = address.options
    name = options.get("preset") or preset_of(address.model)
    with located(str(address)):
        preset = read_preset(name)
    samples = int(_number(address, "samples", 1, 1, _MOST_SAMPLES, whole=True))
    default = _SAMPLING_TEMPERATURE if samples > 1 else 0.0
    temperature = _number(address, "temperature", preset.temperature or default, 0, _MAX_TEMPERATURE)
    if samples > 1 and temperature == 0:
        raise UserError(
            f"{address}: at temperature 0 all {samples} samples are the same.", "Leave out one of the two options."
        )
    schema = options.get("schema", "auto")
    if schema not in SCHEMAS:
        raise UserError(f"{address}: schema is {schema!r}, expected {', '.join(SCHEMAS[:-1])} or {SCHEMAS[-1]}.")
    return Settings(
        address=address,
        preset_name=name,
        samples=samples,
        temperature=temperature,
        max_tokens=int(_number(address, "max_tokens", preset.max_tokens, 16, _MOST_TOKENS, whole=True)),
        schema=schema,
        requests=int(_number(address, "requests", AT_ONCE, 1, _MOST_REQUESTS, whole=True)),
        timeout=_number(address, "timeout", SECONDS, 1, _LONGEST),
    )


def with_options(spec: str, options: dict[str, object]) -> str:
    """Return the address `spec` with the given options added. They override its own options.

    Options whose value is None are ignored. Raises `UserError` if `parse_address` does.
    """
    address = parse_address(spec)
    given = {name: f"{value}" for name, value in options.items() if value is not None}
    return str(replace(address, options=dict(address.options) | given))


def _number(
    address: ServerAddress, name: str, default: float, least: float, most: float, *, whole: bool = False
) -> float:
    text = address.options.get(name)
    if text is None:
        return default
    try:
        value = float(int(text) if whole else float(text))
    except (OverflowError, ValueError):
        value = least - 1
    if not least <= value <= most:
        kind = "a whole number" if whole else "a number"
        raise UserError(f"{address}: {name} is {text!r}, expected {kind} from {least:g} to {most:,g}.")
    return value
