"""Evaluators with a changed reading: the solution is read twice, in both orders, or once."""

import hashlib
from dataclasses import replace

from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import CAUSAL, SERVED, EvaluatorSummary
from stepsight.core.inference_servers.address import is_address
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.prompts.rereading import OWN, Rereading, causal_attention
from stepsight.core.prompts.template import Reading


def reread(evaluator: Evaluator, rereading: Rereading) -> Evaluator:
    """Return the evaluator with the given reading. It shares the weights of the original.

    Its name includes the reading, and its fingerprint differs. If the evaluator already has this reading, it is
    returned unchanged. Raises `UserError` if it is not a causal model on this machine.
    """
    if not isinstance(evaluator, ModelEvaluator):
        raise _no_model(evaluator, rereading)
    check_reading(evaluator.name, rereading.reading, is_causal=evaluator.is_causal)
    if rereading == Rereading(evaluator.reading) and evaluator.encoder.first_copy == OWN:
        return evaluator
    return replace(
        evaluator,
        name=f"{evaluator.name}{rereading}",
        encoder=evaluator.encoder.reread(rereading.reading, rereading.first_copy),
        identify=lambda: _fingerprint(evaluator.fingerprint, rereading),
    )


def reread_summary(about: EvaluatorSummary, rereading: Rereading) -> EvaluatorSummary:
    """Return the summary of the evaluator that `reread` returns. Raises the same errors as `reread`."""
    if not about.parameters:
        raise _no_model(about, rereading)
    check_reading(about.name, rereading.reading, is_causal=about.attention.startswith(CAUSAL))
    attention = causal_attention(rereading.reading)
    if rereading.first_copy == OWN and about.attention in (attention, "bidirectional"):
        return about
    name, fingerprint = f"{about.name}{rereading}", _fingerprint(about.fingerprint, rereading)
    return replace(about, name=name, fingerprint=fingerprint, attention=attention)


def check_reading(name: str, reading: Reading, *, is_causal: bool) -> None:
    """Raise `UserError` if the evaluator is bidirectional and the reading is not "once"."""
    if reading != Reading.ONCE and not is_causal:
        reason = "is bidirectional, and sees later steps already"
        raise _refused(name, Rereading(reading), reason, "Read it once, or choose a causal evaluator.")


def check_address(spec: str, rereading: Rereading) -> None:
    """Raise `UserError` if `spec` is the address of an evaluator behind a server. The server is not contacted."""
    if is_address(spec):
        raise _refused(spec, rereading, "is behind a server", "Choose a model on this machine.")


def _no_model(about: Evaluator | EvaluatorSummary, rereading: Rereading) -> UserError:
    reason = "is behind a server" if about.dtype == SERVED else "is no model"
    return _refused(about.name, rereading, reason, "Choose a model on this machine.")


def _refused(name: str, rereading: Rereading, reason: str, hint: str) -> UserError:
    return UserError(f"{name} cannot be{str(rereading)[1:]}: it {reason}.", hint)


def _fingerprint(own: str, rereading: Rereading) -> str:
    text = f"{own} {rereading.reading} {rereading.first_copy.mark}"
    return hashlib.sha256(text.encode()).hexdigest()
