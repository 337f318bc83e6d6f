import itertools

import pytest

from stepsight.training.runs.batches import Batches

# 1,003 traces of 7 to 300 tokens: 125 batches of 8, and one of 3.
LENGTHS = [7 + (37 * i) % 294 for i in range(1003)]


def parts(lengths, batch_size, accumulation, processes, epoch=0):
    """What each process computes, part by part."""
    found = []
    for process in range(processes):
        batches = Batches(lengths, batch_size, 13, accumulation=accumulation, processes=processes, process=process)
        batches.set_epoch(epoch)
        found.append(list(batches))
        assert len(found[-1]) == len(batches)
    return found


@pytest.mark.parametrize(("accumulation", "processes"), [(1, 1), (4, 1), (1, 3), (2, 2), (8, 1), (4, 5)])
def test_the_steps_are_the_same_for_every_hardware(accumulation, processes):
    steps = Batches(LENGTHS, 8, 13).steps()
    assert sorted(itertools.chain(*steps)) == list(range(1003))
    assert sorted(map(len, steps)) == [3] + [8] * 125
    found = parts(LENGTHS, 8, accumulation, processes)
    for number, step in enumerate(steps):
        shared = [own[number * accumulation + part] for own in found for part in range(accumulation)]
        # 1003 is the place of the example without a label, which stands alone where a part has no trace.
        assert all(part == [1003] or 1003 not in part for part in shared)
        assert sorted(place for part in shared for place in part if place != 1003) == sorted(step)


def test_a_batch_too_small_for_all_parts_is_filled_up():
    # Batches of 4 in 2 parts for 2 processes: one trace each. The last of 5 traces leaves three of four empty.
    first, second = parts([10, 10, 10, 10, 99], 4, 2, 2)
    assert sorted(first + second, key=lambda part: part[0])[-3:] == [[5], [5], [5]]
    assert sorted(place for part in first + second for place in part if place < 5) == [0, 1, 2, 3, 4]


def test_a_batch_has_traces_of_nearly_one_length():
    steps = Batches(LENGTHS, 8, 13).steps()
    spread = [max(LENGTHS[i] for i in step) - min(LENGTHS[i] for i in step) for step in steps]
    # 50 batches sorted together hold 400 lengths of 7 to 300: eight neighbours differ by 6 on average.
    assert sum(spread) / len(spread) < 8
    # Yet a step's length says nothing of its place, but for the longest, which comes first.
    assert max(LENGTHS) in [LENGTHS[i] for i in steps[0]]
    longest = [max(LENGTHS[i] for i in step) for step in steps[1:]]
    assert longest not in (sorted(longest), sorted(longest, reverse=True))
    halves = [sum(half) / len(half) for half in (longest[:62], longest[62:])]
    assert abs(halves[0] - halves[1]) < 30


def test_an_epoch_is_drawn_from_the_seed_and_its_number_alone():
    def steps(seed, epoch):
        batches = Batches(LENGTHS, 8, seed)
        batches.set_epoch(epoch)
        return batches.steps()

    assert steps(13, 1) == steps(13, 1)
    # No epoch of a seed is one of another.
    orders = [steps(seed, epoch) for seed in (13, 14, 15) for epoch in range(3)]
    assert all(one != other for number, one in enumerate(orders) for other in orders[:number])


def test_sorted_an_epoch_goes_from_the_longest_to_the_shortest():
    batches = Batches(LENGTHS, 8, 13, order="sorted")
    first = list(itertools.chain(*batches.steps()))
    assert [LENGTHS[place] for place in first] == sorted(LENGTHS, reverse=True)
    # Traces of one length change places from epoch to epoch, and with the seed.
    batches.set_epoch(1)
    second = list(itertools.chain(*batches.steps()))
    assert first != second
    assert sorted(first) == sorted(second)
    third = list(itertools.chain(*Batches(LENGTHS, 8, 14, order="sorted").steps()))
    assert first != third != second
    assert sorted(first) == sorted(third)
