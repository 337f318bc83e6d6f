"""The rules by which evaluators' authors score a whole solution when they choose among several.

An evaluator is recognised by its name, in the spelling of the model hub, of StrictPRMBench's score files, or of the
catalogue: case, owner, and hyphens or underscores make no difference.
"""

from dataclasses import dataclass

from stepsight.core.metrics.best_of_n import Aggregation


@dataclass(frozen=True)
class OfficialRule:
    """The rule of the evaluators whose names begin with one of `names`, and the `source` that states it."""

    names: tuple[str, ...]
    by: Aggregation
    source: str


OFFICIAL_RULES = (
    OfficialRule(
        ("math-shepherd",),
        Aggregation.MIN,
        "Wang et al. 2024, Math-Shepherd (arXiv 2312.08935): the least score of the steps",
    ),
    OfficialRule(
        ("skywork",),
        Aggregation.MEAN,
        "SkyworkAI/skywork-o1-prm-inference: the average over the steps",
    ),
    OfficialRule(
        ("rlhflow", "llama3.1-8b-prm"),
        Aggregation.MEAN,
        "RLHFlow/RLHF-Reward-Modeling, math-rm: the average over the steps",
    ),
    OfficialRule(
        ("qwen-prm", "qwen-math-prm", "qwen2.5-math-prm", "qwen2.5-math-7b-prm800k"),
        Aggregation.PRODUCT,
        "Zhang et al. 2025, The Lessons of Developing PRMs (arXiv 2501.07301): the product of the steps' scores",
    ),
    OfficialRule(
        ("internlm2",),
        Aggregation.LAST,
        "Cai et al. 2024, InternLM2 (arXiv 2403.17297): a reward of the whole conversation, read at its end",
    ),
)
"""As StrictPRMBench applies them in its column `official`."""


def official_rule(evaluator: str) -> OfficialRule | None:
    """Return the rule of the evaluator's authors; None if they state none."""
    name = evaluator.rpartition("/")[2].lower().replace("_", "-")
    return next((rule for rule in OFFICIAL_RULES if name.startswith(rule.names)), None)
