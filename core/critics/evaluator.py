"""A critic as an evaluator: a chat model behind a server that writes a verdict on each step.

    critic:http://HOST:8000/v1#MODEL
    critic:http://HOST:8000/v1#launch/ThinkPRM-7B,samples=4

Its options are `preset`, `samples`, `temperature`, `max_tokens` and `schema`.
"""

import hashlib
import json
from dataclasses import dataclass, field, replace

import numpy as np

from stepsight.core.critics.presets import Preset, list_presets, preset_of, read_preset
from stepsight.core.critics.reading import READINGS
from stepsight.core.errors import UserError
from stepsight.core.models.abstract import Evaluator
from stepsight.core.prompts.encoding import Encoded
from stepsight.core.scores import Outputs
from stepsight.core.servers.address import CRITIC, Address, parse_address
from stepsight.core.trace import Trace

OPTIONS = ("preset", "samples", "temperature", "max_tokens", "schema")

SCHEMAS = ("auto", "yes", "no")
"""Whether the server is asked to hold the critic to a JSON schema; auto tries it once."""

# That of a critic without one of its own that is asked more than once: at 0 all samples would be the same.
_WARM = 0.7
_MOST_SAMPLES, _MOST_TOKENS, _HOTTEST = 1000, 1_000_000, 2.0
# Counted up when the judgment that answers make changes.
_VERSION = 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Critic(Evaluator):
    """Judges by what a model writes. `samples` answers to each question make probabilities of the share of each
    verdict; one answer makes them 0 or 1."""

    address: Address
    preset_name: str
    samples: int
    temperature: float
    max_tokens: int
    schema: str = "auto"
    format: str = CRITIC
    provenance: dict[str, object] = field(default_factory=dict)

    @property
    def preset(self) -> Preset:
        return read_preset(self.preset_name)

    @property
    def fingerprint(self) -> str:
        """Of the server, the model, every word that it is asked, and how it answers."""
        parts = [_VERSION, self.address.url, self.address.model, self.preset.digest]
        parts += [self.samples, self.temperature, self.max_tokens]
        return f"{CRITIC}:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"

    @property
    def attention(self) -> str:
        return "bidirectional" if READINGS[self.preset.reading].of_all else "causal"

    @property
    def context(self) -> int | None:
        """Not known: the server refuses what is too long."""
        return None

    @property
    def dtype(self) -> str:
        return "float32"

    @property
    def parameters(self) -> int:
        """Not known either."""
        return 0

    @property
    def described(self) -> str:
        asked = "asked once" if self.samples == 1 else f"{self.samples} samples at temperature {self.temperature:g}"
        seen = "with all steps in view" if self.attention == "bidirectional" else "with the steps before it in view"
        return (
            f"{self.name}: a critic by the preset {self.preset_name} (version {self.preset.version}), {asked}; "
            f"each step is judged {seen}."
        )

    def encode(self, trace: Trace) -> Encoded:
        nothing = np.zeros(0, np.int64)
        return Encoded(nothing, nothing, nothing)


def load_critic(spec: str | Address) -> Critic:
    """The critic of an address. The server is not asked yet. Raises `UserError` where an option is none, or its
    value cannot be."""
    address = parse_address(spec) if isinstance(spec, str) else spec
    address.check_options(OPTIONS)
    options = address.options
    name = options.get("preset") or preset_of(address.model)
    if name not in list_presets():
        raise UserError(f"{address}: there is no preset {name!r}.", f"Choose one of: {', '.join(list_presets())}.")
    preset = read_preset(name)
    samples = int(_number(address, "samples", 1, 1, _MOST_SAMPLES, whole=True))
    warm = _WARM if samples > 1 else 0.0
    temperature = _number(address, "temperature", preset.temperature or warm, 0, _HOTTEST)
    if samples > 1 and temperature == 0:
        raise UserError(
            f"{address}: at temperature 0 all {samples} samples are the same.", "Leave one of the two options out."
        )
    schema = options.get("schema", "auto")
    if schema not in SCHEMAS:
        raise UserError(f"{address}: schema is {schema!r}, expected {', '.join(SCHEMAS[:-1])} or {SCHEMAS[-1]}.")
    return Critic(
        name=_named(address, name),
        address=address,
        preset_name=name,
        outputs=Outputs.THREE_WAY if READINGS[preset.reading].three_way else Outputs.VALIDITY,
        samples=samples,
        temperature=temperature,
        max_tokens=int(_number(address, "max_tokens", preset.max_tokens, 16, _MOST_TOKENS, whole=True)),
        schema=schema,
    )


def with_options(spec: str, options: dict[str, object]) -> str:
    """The address with more options, which win over its own; None is none. Raises as `parse_address` does."""
    address = parse_address(spec)
    given = {name: f"{value}" for name, value in options.items() if value is not None}
    return str(replace(address, options=dict(address.options) | given))


def _named(address: Address, preset: str) -> str:
    """Its address with the options in one order, so that two who are the same have one name."""
    options = {name: address.options[name] for name in OPTIONS if name in address.options and name != "schema"}
    if options.get("preset") == preset_of(address.model):
        del options["preset"]
    if options.get("samples") == "1":
        del options["samples"]
    return str(replace(address, options=options))


def _number(
    address: Address, name: str, default: float, least: float, most: float, *, whole: bool = False
) -> float:
    text = address.options.get(name)
    if text is None:
        return default
    try:
        value = float(int(text) if whole else float(text))
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        kind = "a whole number" if whole else "a number"
        raise UserError(f"{address}: {name} is {text!r}, expected {kind} from {least:g} to {most:,g}.")
    return value
