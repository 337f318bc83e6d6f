import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from stepsight.core.metrics.agreement import (
    ALL_SAME,
    NO_ERROR,
    NO_LABEL,
    NO_OVERLAP,
    NOTHING_SHARED,
    ONE_ANNOTATOR,
    ONE_LABEL,
    UNLABELLED,
    UNSURE,
    RaterPair,
    Ratings,
    Scale,
    agreeing,
    agreeing_with_others,
    alpha,
    kappa,
)
from stepsight.core.metrics.bootstrap import resamples

NONE = np.nan
# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), the example of its sections C and E.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NONE, NONE, NONE],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NONE, 3],
        [NONE, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NONE],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NONE],
    ]
)


def test_krippendorffs_nominal_example():
    found = alpha(OBSERVERS, Scale.NOMINAL)
    # Unit 12 has one value and no pair. The other 40 values are 9, 13, 10, 5 and 3 of 1 to 5; of the coincidences
    # 7 + 10 + 8 + 4 + 3 = 32 are equal: (39 * 32 - (9*8 + 13*12 + 10*9 + 5*4 + 3*2)) / (40 * 39 - 344).
    assert found.alpha.number == pytest.approx((39 * 32 - 344) / (1560 - 344))
    assert round(found.alpha.number, 3) == 0.743
    assert found.n_units == 11
    # Units 1 and 10 have three pairs, 11 has one, the other eight have six each; of those of units 2 and 8 three
    # are equal, of those of unit 6 none.
    assert found.n_pairs == 2 * 3 + 1 + 8 * 6
    assert found.agreeing.number == pytest.approx((55 - 3 - 3 - 6) / 55)


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [
        (np.empty((0, 0)), NO_LABEL),
        (np.full((3, 4), NONE), NO_LABEL),
        (np.array([[0.0, 1, 2], [NONE, NONE, NONE]]), ONE_ANNOTATOR),
        (np.array([[0.0, 1, NONE], [NONE, NONE, 2]]), NO_OVERLAP),
        (np.array([[2.0, 2], [2, 2]]), ALL_SAME),
        # The third value belongs to nobody's pair.
        (np.array([[2.0, 2, 0], [2, 2, NONE]]), ALL_SAME),
    ],
)
def test_an_undefined_alpha_gives_the_reason(ratings, reason):
    for level in Scale:
        found = alpha(ratings, level, np.zeros(ratings.shape[1], np.int64), np.ones((5, 1), np.uint8))
        assert np.isnan(found.alpha.number)
        assert found.alpha.reason == reason
        assert np.isnan(found.alpha.low)
    if reason == ALL_SAME:
        assert found.agreeing.number == 1
    else:
        assert found.agreeing.reason == reason


def campaign(seed, traces=60, people=4, flips=0.3):
    """Ratings of some steps per trace, of which some are missing, and each step's trace."""
    rng = np.random.default_rng(seed)
    trace = np.repeat(np.arange(traces), rng.integers(1, 9, traces))
    truth = rng.choice(3, len(trace), p=[0.2, 0.2, 0.6])
    ratings = np.where(rng.random((people, len(trace))) < flips, rng.choice(3, (people, len(trace))), truth)
    return np.where(rng.random(ratings.shape) < 0.3, NONE, ratings), trace


@pytest.mark.parametrize("level", Scale)
def test_every_resample_has_the_librarys_value_on_the_repeated_units(level):
    ratings, trace = campaign(4)
    weights = resamples(60, 40)
    measured, shares = alpha(ratings, level, trace, weights), []
    assert measured.alpha.number == pytest.approx(krippendorff.alpha(ratings, level_of_measurement=str(level)))
    for row, drawn in zip(weights, measured.alpha.draws, strict=True):
        chosen = ratings[:, np.repeat(np.arange(len(trace)), row[trace])]
        assert drawn == pytest.approx(krippendorff.alpha(chosen, level_of_measurement=str(level)))
        shares.append(alpha(chosen, level).agreeing.number)
    agreeing = measured.agreeing
    assert [agreeing.low, agreeing.high] == pytest.approx(np.percentile(shares, [2.5, 97.5]))


def test_a_resample_without_two_values_has_neither_alpha_nor_kappa():
    # Two traces of one step each; drawing either twice leaves equal labels only.
    ratings, weights = np.array([[0.0, 2], [0, 2]]), np.array([[1, 1], [2, 0], [0, 0]], np.uint8)
    np.testing.assert_array_equal(kappa.draws(pair([0, 2], [0, 2]), weights), [1, NONE, NONE])
    for level in Scale:
        np.testing.assert_array_equal(alpha(ratings, level, np.arange(2), weights).alpha.draws, [1, NONE, NONE])


def test_the_interval_holds_the_value_and_narrows_with_more_traces():
    widths = []
    for traces in (30, 480):
        ratings, trace = campaign(7, traces)
        value = alpha(ratings, Scale.ORDINAL, trace, resamples(traces, 400)).alpha
        assert value.low < value.number < value.high
        widths.append(value.high - value.low)
    # Sixteen times the traces: a quarter of the width, more or less.
    assert widths[1] == pytest.approx(widths[0] / 4, rel=0.4)


def test_one_trace_alone_has_no_interval():
    ratings, weights = np.array([[0, 2, 1, NONE], [0, 2, 2, 1]]), resamples(2, 20)
    for trace in ([0, 0, 0, 0], [0, 0, 0, 1]):
        found = alpha(ratings, Scale.ORDINAL, np.array(trace), weights)
        others = agreeing_with_others(ratings, 0, np.array(trace), weights)
        assert found.alpha.exists
        assert np.isnan([found.alpha.low, found.agreeing.low, others.low]).all()
    both = pair([0, 2, 2], [0, 2, 1], [1, 1, 1])
    assert kappa(both, weights).exists
    assert np.isnan([kappa(both, weights).low, agreeing(both, weights).low]).all()


def test_one_person_with_all_others():
    # Equal to the second person on steps 1 and 2 of three, to the third on step 2 of two.
    ratings = np.array([[0, 2, 1, NONE], [0, 2, 2, 1], [NONE, 2, 0, 0]])
    assert agreeing_with_others(ratings, 0, np.arange(4)).number == 3 / 5
    value = agreeing_with_others(ratings, 0, np.arange(4), resamples(4, 200))
    assert value.low < value.number < value.high
    alone = np.array([[0, NONE], [NONE, 2]])
    assert agreeing_with_others(alone, 0, np.arange(2), resamples(2, 20)).reason == NO_OVERLAP


def test_whole_traces_are_drawn():
    # Every trace is nothing but agreement or nothing but disagreement: drawing steps would vary far less.
    ratings = np.array([[0, 2] * 50, ([0, 2] * 5 + [2, 0] * 5) * 5])
    by_trace = alpha(ratings, trace=np.repeat(np.arange(10), 10), weights=resamples(10, 400)).alpha
    by_step = alpha(ratings, trace=np.arange(100), weights=resamples(100, 400)).alpha
    assert by_trace.number == by_step.number
    assert by_trace.high - by_trace.low > 2 * (by_step.high - by_step.low)


def pair(first, second, trace=None):
    first, second = np.array(first, float), np.array(second, float)
    return RaterPair.of(first, second, np.arange(len(first)) if trace is None else np.array(trace))


def test_cohens_own_example():
    # Cohen (1960): of 200 cases, rows are one judge's three classes, columns the other's.
    table = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]
    cases = [(row, column) for row in range(3) for column in range(3) for _ in range(table[row][column])]
    found = pair(*zip(*cases, strict=True))
    # They agree on 140 of 200; chance gives 120/200 * 100/200 + 60/200 * 60/200 + 20/200 * 40/200 = 0.41.
    assert agreeing(found).number == pytest.approx(0.7)
    assert kappa(found).number == pytest.approx((0.7 - 0.41) / (1 - 0.41))
    assert round(kappa(found).number, 3) == 0.492


def test_only_steps_that_both_rated_count():
    found = pair([0, NONE, 2, 1], [0, 1, NONE, 2], [0, 0, 1, 1])
    assert (len(found), found.traces) == (2, 2)
    # Equal once of twice; by chance 1/2 * 1/2 for neg, nothing for the others.
    assert kappa(found).number == pytest.approx((1 / 2 - 1 / 4) / (1 - 1 / 4))


def test_an_undefined_kappa_gives_the_reason():
    weights = resamples(2, 20)
    for given in (None, weights):
        assert kappa(pair([0, NONE], [NONE, 1]), given).reason == NOTHING_SHARED
        assert agreeing(pair([0, NONE], [NONE, 1]), given).reason == NOTHING_SHARED
        assert kappa(pair([2, 2], [2, 2]), given).reason == ONE_LABEL
        assert agreeing(pair([2, 2], [2, 2]), given).number == 1
        # One always says neg, the other always pos: by chance they would never agree either.
        assert kappa(pair([0, 0], [2, 2]), given).number == 0


def test_every_resample_has_scikit_learns_value_on_the_repeated_units():
    rng = np.random.default_rng(5)
    trace = np.repeat(np.arange(30), rng.integers(1, 6, 30))
    first = rng.choice(3, len(trace)).astype(float)
    second = np.where(rng.random(len(trace)) < 0.6, first, rng.choice(3, len(trace)))
    # The last traces are not shared, which must not move the places of the others.
    second[trace > 24] = NONE
    second[trace == 3] = NONE
    found, weights = RaterPair.of(first, second, trace), resamples(30, 50)
    for row, drawn in zip(weights, kappa.draws(found, weights), strict=True):
        chosen = np.repeat(np.arange(len(found)), row[found.trace])
        assert drawn == pytest.approx(cohen_kappa_score(found.first[chosen], found.second[chosen]))
    value = kappa(found, weights)
    assert value.number == pytest.approx(cohen_kappa_score(found.first, found.second))
    assert value.low < value.number < value.high
    share = agreeing(found, weights)
    assert share.low < share.number < share.high


NEG, NEU, POS = 0, 1, 2


def ratings(*traces, people=("ada", "bo")):
    """The ratings of each trace's steps by each person."""
    codes = np.concatenate([np.array(trace, np.int8) for trace in traces], axis=1)
    lengths = [len(trace[0]) for trace in traces]
    position = np.concatenate([np.arange(length) for length in lengths])
    return Ratings(people, codes, np.repeat(np.arange(len(traces)), lengths), position, len(traces))


def test_unsure_and_unlabelled_are_no_labels():
    found = ratings([[NEG, NEU, POS], [UNSURE, UNLABELLED, NEU]])
    np.testing.assert_array_equal(found.labels, [[0, 1, 2], [NONE, NONE, 1]])
    np.testing.assert_array_equal(found.validity, [[0, 1, 1], [NONE, NONE, 1]])
    np.testing.assert_array_equal(found.counts, [[1, 0, 0, 1], [0, 1, 0, 0], [0, 1, 1, 0]])


def test_the_first_error_is_known_only_if_all_steps_before_it_are():
    found = ratings(
        # The second at step 1, after which nothing matters; none.
        [[POS, NEG, UNSURE], [POS, NEU, POS]],
        # An unsure step before the error; no error, but a step unlabelled.
        [[UNSURE, NEG], [POS, UNLABELLED]],
        # At the first step; nothing at all said.
        [[NEG], [UNLABELLED]],
    )
    np.testing.assert_array_equal(found.first_errors, [[1, NONE, 0], [NO_ERROR, NONE, NONE]])
    np.testing.assert_array_equal(found.answers, [[True, True, True], [True, True, False]])


def test_the_majority_is_of_more_than_any_other():
    said = [[NEG, NEG, UNSURE, POS], [NEG, POS, POS, UNLABELLED], [POS, NEU, POS, UNSURE]]
    three = ratings(said, people=("ada", "bo", "cy"))
    # Two of three; three that differ; two, the third unsure; one alone.
    np.testing.assert_array_equal(three.majority, [NEG, NONE, POS, POS])


def test_some_traces_in_another_order():
    found = ratings([[POS, NEG], [POS, POS]], [[NEU], [NEU]], [[NEG, POS], [UNSURE, POS]]).of_traces([2, 0])
    np.testing.assert_array_equal(found.codes, [[NEG, POS, POS, NEG], [UNSURE, POS, POS, POS]])
    np.testing.assert_array_equal(found.trace, [0, 0, 1, 1])
    np.testing.assert_array_equal(found.position, [0, 1, 0, 1])
    np.testing.assert_array_equal(found.first_errors, [[0, 1], [NONE, NO_ERROR]])


def test_nothing_rated():
    empty = Ratings((), np.empty((0, 0), np.int8), np.empty(0, np.int64), np.empty(0, np.int64), 0)
    assert empty.first_errors.shape == (0, 0)
    assert empty.majority.shape == (0,)
    assert empty.counts.shape == (0, 4)
    assert ratings([[POS], [NEG]]).of_traces([]).codes.shape == (2, 0)
