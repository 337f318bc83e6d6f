"""Examples by hand: with the template `{problem}`, a one-letter text is one token and so is each separator."""

import itertools

import numpy as np
import pytest
import torch

from stepsight.core.prompts.encoding import Encoder
from stepsight.core.prompts.template import PromptTemplate, Read
from stepsight.core.trace import Label, Step, Trace
from stepsight.training.data.examples import IGNORED, SOFT, Batches, Example, build_examples, collate
from tests.checkpoints import tiny_tokenizer

NEG, NEU, POS = 0, 1, 2


@pytest.fixture(scope="module")
def encoder():
    return Encoder(tiny_tokenizer(), PromptTemplate(prompt="{problem}"))


def build(encoder, *traces, truncation="as-labelled", seed=0, longest=100):
    return build_examples(traces, encoder, truncation, seed, longest)[0]


def test_labels_stand_at_the_ends_of_substeps(encoder):
    trace = Trace.of("q", ["x", ["y", "z"], "w"], ["pos", "neg", None])
    (example,) = build(encoder, trace)
    # q | x | y | z | w |: reads at the separators after the first one.
    assert len(example.ids) == 10
    assert example.ends.tolist() == [3, 5, 7, 9]
    assert example.labels.tolist() == [POS, NEG, NEG, IGNORED]
    assert (example.ids[example.ends] == encoder.separator).all()


def test_a_share_without_a_label_is_learnt_and_stands_at_every_end_of_its_step(encoder):
    steps = (Step(("x",), share=0.25), Step(("y", "z"), share=1.0), Step(("w",), Label.NEG, share=0.5))
    soft, hard = build(encoder, Trace("", "q", steps), Trace.of("q", ["x"], ["pos"]))
    assert soft.labels.tolist() == [SOFT, SOFT, SOFT, NEG]
    assert soft.shares[:3].tolist() == [0.25, 1.0, 1.0]
    assert hard.shares is None
    batch = collate([hard, soft])
    assert batch["shares"][1, :3].tolist() == [0.25, 1.0, 1.0]
    assert "shares" not in collate([hard])


def test_labels_stand_where_the_template_reads():
    template = PromptTemplate(prompt="{problem}", read=Read.SECOND_TO_LAST)
    (example,) = build(Encoder(tiny_tokenizer(), template), Trace.of("q", ["12", "345"], ["pos", "neg"]))
    # q 1 2 3 4 5, each digit a token: the steps end at 2 and 5 and are read one before.
    assert len(example.ids) == 6
    assert example.ends.tolist() == [1, 4]
    assert example.labels.tolist() == [POS, NEG]


def test_a_trace_without_labels_or_too_long_is_dropped(encoder):
    labelled = Trace.of("q", ["x"], ["neu"])
    longer = Trace.of("q", ["x", "y"], ["pos", "pos"])
    kept = build(encoder, Trace.of("q", ["x"]), labelled, longer, longest=4)
    assert [example.labels.tolist() for example in kept] == [[NEU]]
    assert len(build(encoder, longer, longest=6)) == 1


def four_steps():
    return Trace.of("q", ["x", ["y", "z"], "w", "v"], ["pos", "neu", "neg", "pos"])


def test_random_truncation_cuts_every_second_trace_uniformly_between_steps(encoder):
    count = 2000
    whole, *_ = build(encoder, four_steps())
    examples = build(encoder, *[four_steps()] * count, truncation="random")
    for example in examples:
        n = len(example.ends)
        assert example.labels.tolist() == whole.labels[:n].tolist()
        assert example.ids.tolist() == whole.ids[: whole.ends[n - 1] + 1].tolist()
    # Kept steps 1, 2, 3, 4 have 1, 3, 4, 5 sub-steps. Half the traces are cut, each length with 1/4:
    # 1/8 for each of the first three, 1/8 + 1/2 for the whole. The largest standard deviation is 0.011.
    lengths = np.array([len(example.ends) for example in examples])
    shares = [(lengths == n).mean() for n in (1, 3, 4, 5)]
    np.testing.assert_allclose(shares, [1 / 8, 1 / 8, 1 / 8, 5 / 8], atol=0.04)


def test_a_cut_depends_on_the_seed_and_the_place_alone(encoder):
    def lengths(traces, seed=0):
        return [len(example.ids) for example in build(encoder, *traces, truncation="random", seed=seed)]

    forty = lengths([four_steps()] * 40)
    assert lengths([four_steps()] * 80)[:40] == forty
    assert lengths([four_steps()] * 40) == forty
    assert lengths([four_steps()] * 40, seed=1) != forty
    # Other traces before it change nothing but themselves.
    other = Trace.of("q", ["x"], ["pos"])
    assert lengths([other, *[four_steps()] * 39])[1:] == forty[1:]


def test_a_cut_that_would_leave_no_label_is_not_made(encoder):
    late = Trace.of("q", ["x", "y"], [None, "pos"])
    kept = build(encoder, *[late] * 40, truncation="random")
    assert len(kept) == 40
    assert {tuple(example.labels) for example in kept} == {(IGNORED, POS)}


def test_the_context_counts_what_is_left_after_the_cut(encoder):
    kept = build(encoder, *[four_steps()] * 40, truncation="random", longest=4)
    assert {len(example.ids) for example in kept} == {4}


def test_a_batch_is_padded_on_the_right_and_masked_by_length():
    short = Example(np.array([5, 1, 6, 1]), np.array([3]), np.array([POS]))
    # Token 0 is a token like any other: the mask must not be read from the ids.
    long = Example(np.array([0, 1, 7, 1, 0, 1]), np.array([3, 5]), np.array([NEG, IGNORED]))
    batch = collate([short, long])
    assert {name: tensor.dtype for name, tensor in batch.items()} == dict.fromkeys(
        ("input_ids", "attention_mask", "ends", "labels"), torch.int64
    )
    assert batch["input_ids"].shape == batch["attention_mask"].shape == (2, 32)
    assert batch["input_ids"][:, :7].tolist() == [[5, 1, 6, 1, 0, 0, 0], [0, 1, 7, 1, 0, 1, 0]]
    assert batch["attention_mask"].sum(1).tolist() == [4, 6]
    assert batch["attention_mask"][:, :4].all()
    assert batch["ends"].tolist() == [[3, 0], [3, 5]]
    assert batch["labels"].tolist() == [[POS, IGNORED], [NEG, IGNORED]]


def test_continued_traces_are_cut_as_with_random_truncation(encoder):
    traces = [four_steps()] * 200
    continued, cut, whole = (
        [example.ids.tolist() for example in build(encoder, *traces, truncation=truncation)]
        for truncation in ("continued", "random", "as-labelled")
    )
    assert continued == cut != whole


# 40 tokens would be padded to 64, of which a table of 50 positions holds none beyond the 50th.
WIDTHS = [(1, None, 32), (32, None, 32), (33, None, 64), (64, None, 64), (40, 50, 50), (40, 100, 64)]


@pytest.mark.parametrize(("length", "limit", "width"), WIDTHS)
def test_the_width_is_a_multiple_of_32_within_the_context(length, limit, width):
    example = Example(np.zeros(length, np.int64), np.array([0]), np.array([POS]))
    assert collate([example], limit=limit)["attention_mask"].shape == (1, width)


def test_a_trace_that_is_too_long_can_be_cut_instead(encoder):
    trace = four_steps()
    ((whole,), _) = build_examples([trace], encoder, "as-labelled", 0, 1000)
    limit = int(whole.ends[2])
    ((cut,), dropped) = build_examples([trace], encoder, "as-labelled", 0, limit, cut=True)
    assert dropped == 0
    # The end that the cut takes away is not learnt from; those before it are where they were.
    np.testing.assert_array_equal(cut.ids, whole.ids[:limit])
    np.testing.assert_array_equal(cut.ends, whole.ends[:2])
    np.testing.assert_array_equal(cut.labels, whole.labels[:2])
    assert build_examples([trace], encoder, "as-labelled", 0, limit)[1] == 1
    # Where nothing labelled is left there is nothing to learn.
    assert build_examples([trace], encoder, "as-labelled", 0, int(whole.ends[0]), cut=True) == ([], 1)
    ((exact,), _) = build_examples([trace], encoder, "as-labelled", 0, limit + 1, cut=True)
    np.testing.assert_array_equal(exact.ends, whole.ends[:3])


# 1,003 traces of 7 to 300 tokens: 125 batches of 8, and one of 3.
LENGTHS = [7 + (37 * i) % 294 for i in range(1003)]


@pytest.mark.parametrize(("accumulation", "processes"), [(1, 1), (4, 1), (1, 3), (2, 2), (8, 1), (4, 5)])
def test_the_steps_are_the_same_for_every_hardware(accumulation, processes):
    steps = Batches(LENGTHS, 8, 13).steps(0)
    assert sorted(itertools.chain(*steps)) == list(range(1003))
    assert sorted(map(len, steps)) == [3] + [8] * 125
    shares = [
        Batches(LENGTHS, 8, 13, accumulation=accumulation, processes=processes, process=process).parts(0)
        for process in range(processes)
    ]
    for step, *parts in zip(steps, *shares, strict=True):
        # Every process computes as many parts, some of which have no trace.
        assert [len(own) for own in parts] == [accumulation] * processes
        assert sorted(place for own in parts for part in own for place in part) == sorted(step)


def test_a_batch_has_traces_of_nearly_one_length():
    steps = Batches(LENGTHS, 8, 13).steps(0)
    spread = [max(LENGTHS[i] for i in step) - min(LENGTHS[i] for i in step) for step in steps]
    # 50 batches sorted together hold 400 lengths of 7 to 300: eight neighbours differ by 6 on average.
    assert sum(spread) / len(spread) < 8
    # Yet a step's length says nothing of its place, but for the longest, which comes first.
    assert max(LENGTHS) in [LENGTHS[i] for i in steps[0]]
    longest = [max(LENGTHS[i] for i in step) for step in steps[1:]]
    assert longest not in (sorted(longest), sorted(longest, reverse=True))
    halves = [sum(half) / len(half) for half in (longest[:62], longest[62:])]
    assert abs(halves[0] - halves[1]) < 30


@pytest.mark.parametrize("order", ["mixed", "shuffled"])
def test_an_epoch_is_drawn_from_the_seed_and_its_number_alone(order):
    def steps(seed, epoch):
        return Batches(LENGTHS, 8, seed, order=order).steps(epoch)

    assert steps(13, 1) == steps(13, 1)
    # No epoch of a seed is one of another.
    orders = [steps(seed, epoch) for seed in (13, 14, 15) for epoch in range(3)]
    assert all(one != other for number, one in enumerate(orders) for other in orders[:number])


def test_sorted_an_epoch_goes_from_the_longest_to_the_shortest():
    batches = Batches(LENGTHS, 8, 13, order="sorted")
    first = list(itertools.chain(*batches.steps(0)))
    assert [LENGTHS[place] for place in first] == sorted(LENGTHS, reverse=True)
    # Traces of one length change places from epoch to epoch, and with the seed.
    second = list(itertools.chain(*batches.steps(1)))
    assert first != second
    assert sorted(first) == sorted(second)
    third = list(itertools.chain(*Batches(LENGTHS, 8, 14, order="sorted").steps(0)))
    assert first != third != second
    assert sorted(first) == sorted(third)
