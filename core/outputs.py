"""What kind of thing an evaluator says of a trace."""

from enum import StrEnum


class Outputs(StrEnum):
    """three-way: probabilities of neg, neu, pos for each sub-step; validity: one number for each, read as
    `s_val`; solution: one number for the whole; verdict: a verdict on the whole, and the steps it blames.

    Whatever is not three-way knows nothing of redundancy, unless its verdict was on that.
    """

    THREE_WAY = "three-way"
    VALIDITY = "validity"
    SOLUTION = "solution"
    VERDICT = "verdict"

    @property
    def may_say_redundant(self) -> bool:
        """Whether it may call a solution redundant."""
        return self in (Outputs.THREE_WAY, Outputs.VERDICT)

    @property
    def has_steps(self) -> bool:
        return self != Outputs.SOLUTION

    @property
    def has_scores(self) -> bool:
        """Whether it ranks what it judges: a verdict alone has no ROC curve."""
        return self != Outputs.VERDICT
