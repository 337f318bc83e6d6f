"""Asking for answers, with a stand-in that writes how long each prompt is: an engine, but for the model."""

import json

import pytest

from stepsight.training.experiments.finetuning.generation import ANSWERS, GeneratedAnswer, answer_all, batches_of
from tests.messages import refused

# Their lengths are 3, 1, 2, 5, 4.
PROMPTS = [[7] * length for length in (3, 1, 2, 5, 4)]


class Lengths:
    """Writes down what it was asked; ends in the middle where it is told to."""

    name, context = "lengths", 20

    def __init__(self, most=None):
        self.batches, self.longest, self.most = [], [], most

    def write(self, prompts, longest):
        if len(self.batches) == self.most:
            raise KeyboardInterrupt
        self.batches.append([len(prompt) for prompt in prompts])
        self.longest.append(longest)
        return [GeneratedAnswer(f"{len(prompt)} tokens", len(prompt), True) for prompt in prompts]


def ask(engine, folder, longest=100, size=2, prompts=PROMPTS):
    return answer_all(prompts, lambda: engine, folder, longest, size, lambda done, count: None)


def test_batches_are_of_similar_length_and_the_longest_come_first():
    assert batches_of([3, 1, 2, 5, 4], 2) == [[3, 4], [0, 2], [1]]
    assert batches_of([2, 2, 2], 2) == [[0, 1], [2]]


def test_answers_come_in_the_order_of_the_problems(tmp_path):
    engine = Lengths()
    found = ask(engine, tmp_path)
    assert [one.tokens for one in found] == [3, 1, 2, 5, 4]
    assert engine.batches == [[5, 4], [3, 2], [1]]
    # The context is 20 tokens with the prompt.
    assert engine.longest == [15, 17, 19]
    rows = [json.loads(line) for line in (tmp_path / ANSWERS).read_text().splitlines()]
    assert [row["problem"] for row in rows] == [1, 2, 3, 4, 5]


def test_existing_answers_are_kept_and_a_partial_batch_is_asked_again(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        ask(Lengths(most=2), tmp_path)
    whole = (tmp_path / ANSWERS).read_bytes()
    # A machine that stopped in the middle of the second batch left half of its last line.
    (tmp_path / ANSWERS).write_bytes(whole[:-9])
    engine = Lengths()
    found = ask(engine, tmp_path)
    assert engine.batches == [[3, 2], [1]]
    (tmp_path / "other").mkdir()
    assert found == ask(Lengths(most=0), tmp_path) == ask(Lengths(), tmp_path / "other")
    assert (tmp_path / ANSWERS).read_bytes() == (tmp_path / "other" / ANSWERS).read_bytes()


def test_a_prompt_that_is_too_long_is_named_before_anything_is_asked(tmp_path):
    engine = Lengths()
    with refused():
        ask(engine, tmp_path, prompts=[[7], [7] * 20])
    assert engine.batches == []
