"""A critic used as an evaluator: a chat model on a server that writes a verdict on each step."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from stepsight.core.critics.critic_prompts import CallEstimate, estimate
from stepsight.core.critics.scoring import CriticClient, Tally
from stepsight.core.critics.settings import read_settings
from stepsight.core.critics.verdict_parser import READINGS
from stepsight.core.errors import UserError
from stepsight.core.inference_servers.address import CRITIC, ServerAddress
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.evaluator import named
from stepsight.core.models.evaluator_base import ServedEvaluator
from stepsight.core.prompts.encoding import Encoded
from stepsight.core.scores import Outputs
from stepsight.core.trace import Trace


@dataclass(frozen=True, eq=False, kw_only=True)
class Critic(ServedEvaluator):
    """An evaluator that takes its verdicts from text written by a chat model.

    The probability of a label is its share among several samples of the verdict; with one sample it is 0 or 1. A
    trace gets no judgment if the verdict on a step cannot be read. Such traces are counted in `tally`.
    """

    client: CriticClient
    format: str = CRITIC

    @property
    def fingerprint(self) -> str:
        return self.client.settings.fingerprint

    @property
    def attention(self) -> str:
        return "bidirectional"

    @property
    def context(self) -> int | None:
        """Always None: the limit is unknown, and the server itself refuses inputs that are too long."""
        return None

    @property
    def described(self) -> str:
        settings = self.client.settings
        samples = "asked once" if settings.samples == 1 else f"{settings.samples} samples"
        return (
            f"{self.name}: a critic by the preset {settings.preset_name} (version {settings.preset.version}), "
            f"{samples} at temperature {settings.temperature:g}; each step is judged with all steps in view."
        )

    @property
    def tally(self) -> Tally:
        return self.client.tally

    def encode(self, trace: Trace) -> Encoded:
        nothing = np.zeros(0, np.int64)
        return Encoded(nothing, nothing, nothing)

    def tokens(self, trace: Trace, encoded: Encoded, mode: Mode) -> int:
        return self.estimate(trace, mode).tokens

    def estimate(self, trace: Trace, mode: Mode) -> CallEstimate:
        """Estimate the number of calls and tokens needed to judge a trace."""
        return estimate(self.client.settings.preset, trace, mode, self.client.settings.samples)

    def judge_all(
        self, encoded: Iterable[tuple[Trace, Encoded]], mode: Mode, check: Callable[[], None]
    ) -> Iterator[Judgment]:
        """Like `ServedEvaluator.judge_all`, but raises `UserError` if a trace gets no judgment."""
        for trace, judgment in self.client.judge((trace for trace, _ in encoded), mode, check):
            if judgment is None:
                raise UserError(
                    f"{named(trace)} has no verdict by {self.name} that can be read ({self.tally.last}).",
                    "Score again, or with stepsight score, which leaves such traces out.",
                )
            yield judgment

    def judge_each(
        self, encoded: Iterable[tuple[Trace, Encoded]], mode: Mode, check: Callable[[], None]
    ) -> Iterator[Judgment | None]:
        return (judgment for _, judgment in self.client.judge((trace for trace, _ in encoded), mode, check))

    def judge_readable(self, traces: Iterable[Trace], mode: Mode) -> Iterator[Judgment]:
        """Yield the judgments in order, skipping traces that get none. `tally` counts the skipped traces."""
        return (judgment for _, judgment in self.client.judge(traces, mode) if judgment is not None)


def open_critic(address: ServerAddress) -> Critic:
    """Open the critic at an address. The server is not contacted before the first trace is judged. Raises
    `UserError` if an option is unknown, a value is invalid, or the key in the environment is invalid."""
    settings = read_settings(address)
    three_way = READINGS[settings.preset.reading].three_way
    return Critic(
        name=settings.name,
        outputs=Outputs.THREE_WAY if three_way else Outputs.VALIDITY,
        client=CriticClient(settings),
    )
