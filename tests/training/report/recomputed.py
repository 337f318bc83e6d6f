"""The numbers of an evaluator's card once more: from exported frames, by libraries, without the product's metrics.

`frame` is what `stepsight.frame` gives for one evaluator and mode, and `texts` has the text of every step.
`stressed` has a row for each step of the variants by one transform.
"""

from collections import Counter

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.metrics import brier_score_loss, cohen_kappa_score, f1_score, matthews_corrcoef, roc_auc_score


class Recomputed:
    """Figures of scores in the columns `trace`, `step`, `gold`, `validity` and `redundancy`."""

    def __init__(self, frame: pd.DataFrame, texts: dict[tuple[str, int], str], draws: int) -> None:
        rows = frame[["trace", "step", "gold", "validity", "redundancy"]].copy()
        rows["length"] = [len(texts[key]) for key in zip(rows.trace, rows.step, strict=True)]
        rows = rows.astype({"trace": str, "gold": object, "step": int})
        names = list(dict.fromkeys(rows.trace))
        self.steps = rows.assign(number=rows.trace.map({name: place for place, name in enumerate(names)}))
        rng = np.random.default_rng(0)
        self.samples = [rng.integers(0, len(names), len(names)) for _ in range(draws)]

    def scored_as(self, validity: "pd.Series[float]") -> "Recomputed":
        """The same steps with other scores, such as those of a baseline."""
        other = object.__new__(Recomputed)
        other.steps = self.steps.assign(validity=np.asarray(validity, np.float32), redundancy=np.float32(0))
        other.samples = self.samples
        return other

    def with_interval(self, figure, frame) -> tuple[float, float, float]:
        """A figure of rows, and its middle 95 % over the resamples, which hold whole traces as often as drawn."""
        places = frame.reset_index(drop=True).groupby("number").indices
        none = np.empty(0, np.int64)
        drawn = []
        for sample in self.samples:
            try:
                drawn.append(figure(frame.iloc[np.concatenate([places.get(number, none) for number in sample])]))
            except ValueError:
                drawn.append(np.nan)
        return figure(frame), *np.nanpercentile(drawn, [2.5, 97.5])

    def items(self, errors: str, level: str) -> pd.DataFrame:
        """The steps or solutions of ReasonEval's protocol, with `good` (by gold), `score` and `called` good."""
        rows = self.steps[self.steps.gold.notna()]
        if errors == "invalid":
            rows = rows.assign(good=rows.gold != "neg", score=rows.validity)
            rows = rows.assign(called=rows.score >= np.float32(0.5))
            if level == "step":
                wrong = rows.step.where(~rows.good).groupby(rows.trace).transform("min").fillna(np.inf)
                return rows[rows.step <= wrong]
        else:
            scores = -rows.redundancy if (rows.redundancy != 0).any() else rows.validity
            limit = np.float32(-0.15) if (rows.redundancy != 0).any() else np.float32(0.5)
            called = scores > limit if (rows.redundancy != 0).any() else scores >= limit
            rows = rows.assign(good=rows.gold != "neu", score=scores, called=called)
        if level == "step":
            return rows
        whole = rows.groupby("number").agg(good=("good", "all"), score=("score", "min"), called=("called", "all"))
        return whole.reset_index()

    def auc(self, errors, level):
        return self.with_interval(_auc, self.items(errors, level))

    def f1(self, errors, level):
        return self.with_interval(_f1, self.items(errors, level))

    def brier(self) -> float:
        rows = self.items("invalid", "step")
        return brier_score_loss(rows.good, rows.score.astype(float))

    def ece(self) -> float:
        rows = self.items("invalid", "step").assign(score=lambda one: one.score.astype(float))
        bins = rows.groupby(np.minimum((rows.score * 10).astype(int), 9))
        return float(((bins.score.mean() - bins.good.mean()).abs() * bins.size()).sum() / len(rows))

    def first_errors(self) -> pd.DataFrame:
        rows = self.steps
        found = pd.DataFrame({
            "gold": rows.step.where(rows.gold == "neg").groupby(rows.number).min(),
            "said": rows.step.where(rows.validity < np.float32(0.5)).groupby(rows.number).min(),
        }).fillna(0)  # fmt: skip
        return found.reset_index()

    def first_error_accuracy(self) -> float:
        rows = self.first_errors()
        rows = rows[rows.gold > 0]
        return float((rows.gold == rows.said).mean())

    def processbench_f1(self):
        return self.with_interval(_harmonic, self.first_errors())

    def matthews(self) -> float:
        rows = self.first_errors()
        return float(matthews_corrcoef(rows.gold > 0, rows.said > 0))

    def length(self, *, beyond_gold: bool):
        rows = self.steps[self.steps.gold.notna()] if beyond_gold else self.steps
        valid = rows.gold != "neg" if beyond_gold else 1
        ranked = rows.assign(x=rankdata(rows.validity), y=rankdata(rows.length), group=valid)
        return self.with_interval(_within, ranked)

    def length_of_gold(self):
        rows = self.steps[self.steps.gold.notna()]
        ranked = rows.assign(x=rankdata(rows.gold != "neg"), y=rankdata(rows.length), group=1)
        return self.with_interval(_within, ranked)

    def last_is_least(self):
        return self.with_interval(lambda rows: rows.share.mean(), self._of_several("share"))

    def last_by_chance(self):
        return self.with_interval(lambda rows: rows.chance.mean(), self._of_several("chance"))

    def error_is_last(self):
        rows = self.first_errors().assign(count=self.steps.groupby("number").size().values)
        rows = rows[(rows.gold > 0) & (rows["count"] > 1)]
        return self.with_interval(lambda rows: float((rows.gold == rows["count"]).mean()), rows)

    def beside_people(self, labels: pd.DataFrame):
        """Agreement with the majority, Cohen's kappa, pairs of people that agree, and how many people, traces and
        steps. `labels` has the labels of each annotator."""
        said = labels[labels.label.notna() & (labels.label != "unsure")].astype({"id": str, "label": object})
        numbers = self.steps.drop_duplicates("trace").set_index("trace").number
        units = []
        for (trace, step), votes in said.groupby(["id", "step"]).label:
            counts = Counter(votes).most_common()
            is_tied = len(counts) > 1 and counts[0][1] == counts[1][1]
            most = None if is_tied else counts[0][0] != "neg"
            valid = [one != "neg" for one in votes]
            equal = sum(valid.count(one) * (valid.count(one) - 1) for one in (True, False))
            pairs = len(valid) * (len(valid) - 1)
            units.append((numbers[trace], trace, step, most, equal, pairs))
        found = pd.DataFrame(units, columns=["number", "trace", "step", "most", "equal", "pairs"])
        verdicts = self.steps.set_index(["trace", "step"]).validity >= np.float32(0.5)
        judged = found[found.most.notna()].astype({"most": bool})
        judged = judged.assign(said=[bool(verdicts[key]) for key in zip(judged.trace, judged.step, strict=True)])
        return (
            self.with_interval(lambda rows: float((rows.most == rows.said).mean()), judged),
            self.with_interval(_kappa, judged),
            self.with_interval(lambda rows: rows.equal.sum() / rows.pairs.sum(), found[found.pairs > 0]),
            (labels.annotator.nunique(), judged.trace.nunique(), len(judged)),
        )

    def _of_several(self, name: str) -> pd.DataFrame:
        found = []
        for number, rows in self.steps.groupby("number"):
            values = rows.validity.tolist()
            least = min(values)
            share = (values[-1] == least) / values.count(least)
            found.append({"number": number, "share": share, "chance": 1 / len(values), "count": len(values)})
        frame = pd.DataFrame(found)
        return frame[frame["count"] > 1]

    def redundancy_outcomes(self) -> tuple[int, int, int]:
        """Solutions called redundant, or not, as gold has them; missed ones; and false alarms."""
        rows = self.items("redundant", "solution")
        right = int((rows.good == rows.called).sum())
        return right, int((~rows.good & rows.called).sum()), int((rows.good & ~rows.called).sum())


def stress_figures(stressed: pd.DataFrame, threshold: float):
    """The figures of one transform, the number of steps, and that of variants."""
    steps = stressed[stressed.step.notna()]
    steps = steps.astype({"target": bool}).assign(put_in=steps.origin.isna())
    was, now = (steps[side] < np.float32(threshold) for side in ("before", "after"))
    kept, moved = ~steps.target & ~steps.put_in, was != now
    if stressed.demand.iloc[0] == "must change":
        asked, hit = steps.target & ~was, now
    else:
        asked, hit = kept, ~moved
    change = steps.change.astype(float)
    of = steps.trace
    fall, rise = (sign * change[mask].groupby(of[mask]).mean() for sign, mask in ((-1, steps.target), (1, kept)))
    names = list(dict.fromkeys(of))
    figures = {
        "as_demanded": _ratio((hit & asked).groupby(of).sum(), asked.groupby(of).sum(), names),
        "fall": _ratio(fall, fall.notna(), names),
        "elsewhere": _ratio((moved & kept).groupby(of).any(), pd.Series(1, names), names),
        "inflation": _ratio(rise, rise.notna(), names),
    }
    return figures, int(asked.sum()), len(names)


def by_length(stressed: pd.DataFrame, texts: dict[tuple[str, int], str]) -> pd.DataFrame:
    """The same variants as the baseline of length judges them."""
    rows = stressed[stressed.step.notna()]
    before = [
        np.nan if origin is pd.NA else _of_length(texts[trace, int(origin)])
        for trace, origin in zip(rows.trace, rows.origin.astype(object), strict=True)
    ]
    after = np.array([_of_length(text) for text in rows.text], np.float32)
    before = np.array(before, np.float32)
    return rows.assign(before=before, after=after, change=after - before)


def _of_length(text: str) -> np.float32:
    return np.float32(1 / (1 + len(text) / 500))


def _ratio(hits: pd.Series, total: pd.Series, names: list[str]) -> tuple[float, float, float]:
    """The sum of hits by the sum of the total, and its middle 95 % over 1,000 resamples of the traces."""
    up, down = (np.nan_to_num(one.reindex(names).to_numpy(float)) for one in (hits, total))
    rng = np.random.default_rng(0)
    if len(names) == 1 or not down.sum():
        return up.sum() / down.sum() if down.sum() else None, None, None
    samples = [rng.integers(0, len(names), len(names)) for _ in range(1000)]
    drawn = [up[sample].sum() / down[sample].sum() if down[sample].sum() else np.nan for sample in samples]
    return up.sum() / down.sum(), *np.nanpercentile(drawn, [2.5, 97.5])


def _kappa(rows: pd.DataFrame) -> float:
    if len({*rows.most, *rows.said}) < 2:
        raise ValueError
    return float(cohen_kappa_score(rows.most, rows.said))


def _auc(rows: pd.DataFrame) -> float:
    if rows.good.nunique() < 2:
        raise ValueError
    return float(roc_auc_score(rows.good, rows.score))


def _f1(rows: pd.DataFrame) -> float:
    if rows.good.nunique() < 2:
        raise ValueError
    return float(f1_score(rows.good, rows.called, average="macro", labels=[False, True], zero_division=0))


def _harmonic(rows: pd.DataFrame) -> float:
    wrong, right = rows[rows.gold > 0], rows[rows.gold == 0]
    if not len(wrong) or not len(right):
        raise ValueError
    one, other = float((wrong.gold == wrong.said).mean()), float((right.said == 0).mean())
    return 2 * one * other / (one + other) if one + other else 0.0


def _within(rows: pd.DataFrame) -> float:
    """The correlation of residuals after the mean of each group is taken away."""
    x, y = (rows[name] - rows[name].groupby(rows.group).transform("mean") for name in ("x", "y"))
    return float(np.corrcoef(x, y)[0, 1])
