"""Ten solutions, of which six are valid and not redundant, and what each rule makes of them."""

import math

import numpy as np

from stepsight.core.scores import Thresholds
from stepsight.training.experiments.filtering.subsets import PoolScores, SubsetRule, choose, overlaps
from tests.messages import refused

#              row  1     2     3     4     5     6     7     8     9    10
VALIDITY = [0.90, 0.49, 0.50, 0.80, 0.95, 0.60, 0.99, 0.70, 0.10, 0.85]
REDUNDANCY = [0.10, 0.02, 0.14, 0.15, 0.01, 0.05, 0.40, 0.12, 0.03, 0.11]
# Valid from 0.5: not 2 and 9. Redundant from 0.15: 4 and 7. Left are:
PASSING = [1, 3, 5, 6, 8, 10]


def scores(validity=VALIDITY, redundancy=REDUNDANCY):
    return PoolScores(np.arange(1, len(validity) + 1), np.array(validity), np.array(redundancy))


def chosen(found=None, **rule):
    return {name: subset.rows.tolist() for name, subset in choose(found or scores(), SubsetRule(**rule)).items()}


def test_the_papers_rules():
    subsets = choose(scores(), SubsetRule())
    assert {name: len(subset.rows) for name, subset in subsets.items()} == dict.fromkeys(
        ("val+red", "val", "red", "random"), 6
    )
    assert subsets["val+red"].rows.tolist() == PASSING
    # By validity: 0.99 (7), 0.95 (5), 0.90 (1), 0.85 (10), 0.80 (4), 0.70 (8).
    assert subsets["val"].rows.tolist() == [1, 4, 5, 7, 8, 10]
    assert (subsets["val"].edge, subsets["val"].tied) == (0.70, 1)
    # By redundancy: 0.01 (5), 0.02 (2), 0.03 (9), 0.05 (6), 0.10 (1), 0.11 (10).
    assert subsets["red"].rows.tolist() == [1, 2, 5, 6, 9, 10]
    assert (subsets["red"].edge, subsets["red"].tied) == (0.11, 1)
    assert len(set(subsets["random"].rows.tolist())) == 6
    # Of 1, 3, 5, 6, 8, 10: val has 1, 5, 8, 10, and red 1, 5, 6, 10.
    shared = overlaps(subsets)
    assert (shared["val+red and val"], shared["val+red and red"]) == (4, 4)
    assert len(shared) == 6


def test_thresholds_are_as_in_the_paper_at_the_edge():
    # Valid is >= 0.5, redundant >= 0.15: one float less is neither.
    below = [math.nextafter(0.5, 0), 0.5, 0.5]
    found = scores(below, [0.0, 0.15, math.nextafter(0.15, 0)])
    assert found.passing(Thresholds()).tolist() == [False, False, True]


def test_other_thresholds():
    # Valid from 0.9: 1, 5, 7; redundant from 0.5: none.
    rule = {"thresholds": Thresholds(0.9, 0.5)}
    assert chosen(**rule)["val+red"] == [1, 5, 7]
    assert chosen(**rule)["val"] == [1, 5, 7]


def test_a_smaller_match_draws_from_those_that_pass():
    subsets = chosen(match=3)
    assert {len(rows) for rows in subsets.values()} == {3}
    assert set(subsets["val+red"]) < set(PASSING)
    assert subsets["val"] == [1, 5, 7]
    assert subsets["red"] == [2, 5, 9]


def test_more_than_there_are_gives_all_there_are():
    # 6 pass, so that no subset can have 8 if all are to be of one size.
    assert {len(rows) for rows in chosen(match=8).values()} == {6}
    # Without val+red only the solutions themselves are the limit.
    assert {name: len(rows) for name, rows in chosen(match=8, by=("val", "random")).items()} == {
        "val": 8,
        "random": 8,
    }
    assert chosen(match=50, by=("red",)) == {"red": [*range(1, 11)]}


def test_one_subset_is_matched_to_val_and_red_that_is_not_written():
    assert chosen(by=("val",)) == {"val": [1, 4, 5, 7, 8, 10]}


def test_nothing_that_passes_is_told():
    with refused():
        choose(scores(), SubsetRule(thresholds=Thresholds(0.999, 0.15)))


def test_the_order_of_scoring_changes_nothing():
    found = scores()
    order = [7, 2, 9, 0, 4, 6, 1, 8, 3, 5]
    shuffled = PoolScores(found.rows[order], found.validity[order], found.redundancy[order])
    assert chosen(shuffled, match=4) == chosen(match=4)


def test_the_seed_changes_what_is_left_to_chance_alone():
    one, same, other = chosen(match=4), chosen(match=4), chosen(match=4, seed=3)
    assert one == same
    assert one["random"] != other["random"]
    assert one["val+red"] != other["val+red"]
    assert (one["val"], one["red"]) == (other["val"], other["red"])


def test_chance_favours_no_row():
    found = scores([0.9] * 10, [0.0] * 10)
    drawn = {name: np.zeros(11, int) for name in ("val+red", "val", "red", "random")}
    for seed in range(400):
        for name, rows in chosen(found, match=3, seed=seed).items():
            drawn[name][rows] += 1
    # 3 of 10 in each of 400 draws: 120 for each row, standard deviation sqrt(400 · 0.3 · 0.7) = 9.2. All are tied,
    # so that val and red are left to chance too.
    for counts in drawn.values():
        assert counts[1:].sum() == 1200
        assert np.all(np.abs(counts[1:] - 120) < 4 * 9.2), counts
    assert choose(found, SubsetRule(match=3))["val"].tied == 10


def test_subsets_are_drawn_independently():
    found = scores([0.9] * 100, [0.0] * 100)
    shared = [overlaps(choose(found, SubsetRule(match=20, seed=seed))) for seed in range(50)]
    for pair in shared[0]:
        # 20 · 20 / 100 = 4 on average, with a standard deviation of 1.6, of 50 draws 0.23.
        assert abs(np.mean([counts[pair] for counts in shared]) - 4) < 1, pair


def test_without_redundancy_nothing_passes():
    found = scores([0.9, 0.8], [math.nan, math.nan])
    assert not found.passing(Thresholds()).any()
    assert chosen(found, by=("val", "random"), match=1)["val"] == [1]
    assert not SubsetRule(by=("val", "random"), match=1).needs_redundancy
    assert SubsetRule(by=("val", "random")).needs_redundancy
    assert SubsetRule(by=("red",), match=1).needs_redundancy
