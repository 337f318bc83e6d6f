"""The rules by which the authors of evaluators score whole solutions when choosing among several.

An evaluator is recognised by its name, as spelled on the model hub, in StrictPRMBench's score files, or in the
catalogue. Case, owner, and the choice of hyphens or underscores make no difference.
"""

from dataclasses import dataclass

from stepsight.core.metrics.best_of_n import Aggregation


@dataclass(frozen=True)
class OfficialRule:
    """The rule by which the authors of an evaluator score a solution: the aggregation `by`, for evaluators whose
    names begin with one of `names`. `source` is the publication that states the rule."""

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
"""The rules as StrictPRMBench applies them in its column `official`."""


def official_rule(evaluator: str) -> OfficialRule | None:
    """Return the rule of the evaluator's authors, or None if they state none."""
    name = evaluator.rpartition("/")[2].lower().replace("_", "-")
    return next((rule for rule in OFFICIAL_RULES if name.startswith(rule.names)), None)
