"""The list of checkpoint formats, and the recognition of a folder's format."""

from collections.abc import Mapping
from typing import Any

from stepsight.core.errors import UserError, located
from stepsight.core.formats.answers import ChatTwoToken, MaskedTokens, MathShepherd, TwoToken
from stepsight.core.formats.format import CheckpointFormat
from stepsight.core.formats.heads import EnsemblePrm, LlemmaPrm, QwenPrm, ReasonEval, StepSight, ValueHead
from stepsight.core.formats.log_ratio import ImplicitPrm
from stepsight.core.formats.token_classification import TokenClassification
from stepsight.core.hubs.public import check_separator, namesake
from stepsight.core.models import llada
from stepsight.core.models.checkpoint import Checkpoint, repository
from stepsight.core.prompts.encoding import Encoder
from stepsight.core.prompts.template import PromptTemplate
from stepsight.core.scores import Thresholds

_STEPSIGHT, _TOKEN_CLASSIFICATION = StepSight(), TokenClassification()
FORMATS: tuple[CheckpointFormat, ...] = (
    ReasonEval(), QwenPrm(), ValueHead(), EnsemblePrm(), _TOKEN_CLASSIFICATION, _STEPSIGHT,
    MathShepherd(), TwoToken(), ChatTwoToken(), LlemmaPrm(), ImplicitPrm(), MaskedTokens(),
)  # fmt: skip


def recognise(checkpoint: Checkpoint) -> CheckpointFormat:
    """Return the format that stepsight.json names or, if it names none, the format that the config shows. Raises
    `UserError` if the name is unknown, or if neither file shows the format."""
    named = checkpoint.card.get("format")
    names = {kind.name: kind for kind in FORMATS} | {llada.NAME: _STEPSIGHT}
    if named is not None:
        if not isinstance(named, str) or named not in names:
            raise UserError(
                f"{checkpoint.folder}/stepsight.json: format {named!r:.40} found.",
                f"Expected one of: {', '.join(names)}.",
            )
        return names[named]
    for kind in FORMATS:
        if kind.recognises(checkpoint):
            return kind
    if "template" in checkpoint.card:
        return _STEPSIGHT
    model = checkpoint.config.get("model_type")
    architecture = ", ".join(checkpoint.architectures) or "no architecture"
    if "ForSequenceClassification" in architecture:
        architecture += ", which has one score for a whole text"
    # A repository may be a copy of a listed one.
    other = namesake(repository(checkpoint.folder))
    copied = f"It is not {other}; if it is a copy of it, load it from a folder of that name. " if other else ""
    raise UserError(
        f"{checkpoint.folder}: no stepsight.json and no format that StepSight knows (model_type {model!r}, "
        f"{architecture}).",
        f"{copied}If this is an evaluator, name its format in stepsight.json, such as "
        f'{{"format": "{MathShepherd.name}"}}; the formats are: {", ".join(names)}.',
    )


def format_of(checkpoint: Checkpoint, kind: CheckpointFormat) -> str:
    """Return the name of the checkpoint's format. StepSight's own format has a second name for LLaDA backbones."""
    return llada.NAME if kind is _STEPSIGHT and llada.recognises(checkpoint.config) else kind.name


def read_card_of(checkpoint: Checkpoint, kind: CheckpointFormat) -> tuple[Encoder, Thresholds, dict[str, Any]]:
    """Return the encoder, the thresholds and the provenance that a checkpoint's stepsight.json gives, with defaults
    from the format `kind`. Raises `UserError`, with a message that names the folder, if a value is invalid or the
    tokenizer is missing."""
    if kind is _TOKEN_CLASSIFICATION:
        check_separator(str(checkpoint.folder), checkpoint.card)
    defaults = kind.template(checkpoint)
    with located(str(checkpoint.folder)):
        template = PromptTemplate.from_dict({**defaults, **_object(checkpoint.card, "template")})
        thresholds = Thresholds.from_dict(_object(checkpoint.card, "thresholds"))
        provenance = _object(checkpoint.card, "provenance")
        encoder = kind.encoder(checkpoint.open_vocabulary(), template)
    return encoder, thresholds, provenance


def _object(card: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the object under a key of stepsight.json, or an empty one if the key is missing. Raises `UserError` if
    the value is not an object."""
    value = card.get(key, {})
    if not isinstance(value, dict):
        raise UserError(f"stepsight.json: {key} is {type(value).__name__}, expected an object.")
    return value
