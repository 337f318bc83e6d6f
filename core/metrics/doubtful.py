"""Doubtful labels: the evidence against each gold label of validity, by confident learning.

The probability of the given label is predicted by a logistic regression on the verdicts of evaluators, equations
and people on the step, fitted to the labels of other problems (out of fold). A label with a low probability is
doubtful: the self-confidence ranking of confident learning (Northcutt et al. 2021). The choice of its features is
our own.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

from stepsight.core.arrays import AnyInts, Bools, Floats64

FOLDS = 5
_SPLITS = 3


def doubts(
    validity: Floats64,
    failing: Bools,
    valid: AnyInts,
    problem: AnyInts,
    *,
    families: Sequence[str] = (),
    votes: Floats64 | None = None,
) -> Floats64:
    """Return the doubt in each label: 1 minus the out-of-fold probability of the label, with shape (n,).

    `validity` has the shape (n, evaluators), with NaN where an evaluator gave no score. Each evaluator counts by
    the ranks of its scores, so that scales need not agree. `families` names the family of each evaluator: a family
    counts once, by the mean of its evaluators. By default, each evaluator is a family of its own. No evidence
    counts against its own direction: a failing equation never makes a step more likely to be valid, nor a higher
    score or a person who calls it valid less likely.

    The other arrays have the shape (n,): `failing` is True for steps with an equation that fails, `valid` holds the
    labels as 0 and 1, `problem` numbers the problem of each step, and `votes` is the number of people who call the
    step valid minus the number who call it wrong. Labels of a problem are never predicted from each other. The
    result is the mean over several divisions into folds. Raises `ValueError` if a label is neither 0 nor 1, or if
    there are fewer than two problems.
    """
    problems = np.unique(problem)
    if not np.isin(valid, (0, 1)).all():
        raise ValueError("a label is neither 0 nor 1")
    if len(problems) < 2:
        raise ValueError(f"{len(problems)} problems, expected at least 2")
    people = () if votes is None or not votes.any() else (votes,)
    # Higher values of each feature are evidence for a valid step.
    features = np.column_stack([*_family_ranks(validity, families), ~failing, *people])
    rng = np.random.default_rng(0)
    place = np.searchsorted(problems, problem)
    splits = [rng.permutation(len(problems)) % min(FOLDS, len(problems)) for _ in range(_SPLITS)]
    right = np.mean([_predict_out_of_fold(features, valid, fold[place]) for fold in splits], axis=0)
    return np.where(valid == 1, 1 - right, right)


def _family_ranks(validity: Floats64, families: Sequence[str]) -> list[Floats64]:
    """Return, for each family, the normal quantiles of its score ranks, averaged over its members. A step without a
    score gets 0, the median."""
    names = list(families) or [str(place) for place in range(validity.shape[1])]
    scored = ~np.isnan(validity)
    quantiles = np.column_stack([*map(_normal_ranks, validity.T), np.empty((len(validity), 0))])
    members = [np.array([name == family for name in names]) for family in dict.fromkeys(names)]
    return [quantiles[:, member].sum(axis=1) / np.maximum(scored[:, member].sum(axis=1), 1) for member in members]


def _normal_ranks(scores: Floats64) -> Floats64:
    """Return the normal quantiles of the ranks of scores. A missing score gets 0, the median."""
    scored = ~np.isnan(scores)
    quantiles = np.zeros(len(scores))
    quantiles[scored] = ndtri(rankdata(scores[scored]) / (scored.sum() + 1))
    return quantiles


def _predict_out_of_fold(features: Floats64, valid: AnyInts, fold: AnyInts) -> Floats64:
    """Return the probability that each step is valid, predicted from the labels of the other folds."""
    probability = np.empty(len(valid))
    for number in np.unique(fold):
        inside = fold == number
        rest = valid[~inside]
        if len(np.unique(rest)) < 2:
            # With only one class, its share after adding one item of each class.
            probability[inside] = (rest.sum() + 1) / (len(rest) + 2)
            continue
        counted = np.ones(features.shape[1])
        while True:
            model = LogisticRegression(max_iter=500).fit(features[~inside] * counted, rest)
            if (model.coef_[0] >= 0).all():
                break
            counted[model.coef_[0] < 0] = 0
        probability[inside] = model.predict_proba(features[inside] * counted)[:, 1]
    return probability
