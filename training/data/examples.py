"""Turning traces into training examples (token ids with labels at the step ends), and examples into batches."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stepsight.core.models.model import IGNORED, SOFT
from stepsight.core.prompts.encoding import Encoder
from stepsight.core.trace import Step, Trace


@dataclass(frozen=True, eq=False)
class Example:
    """An encoded trace with its labels.

    `ids` has shape (tokens,) and holds the token ids. `ends` and `labels` have shape (n,): the positions at which
    the model is read and the label at each of them, which is `IGNORED` for an unlabelled sub-step. A sub-step of a
    step with a share and no label has the label `SOFT`, and its share in `shares`, of shape (n,). They are None if
    no label is `SOFT`.
    """

    ids: NDArray[np.int64]
    ends: NDArray[np.int64]
    labels: NDArray[np.int64]
    shares: NDArray[np.float32] | None = None


def build_examples(
    traces: Iterable[Trace],
    encoder: Encoder,
    truncation: str,
    seed: int,
    longest: int,
    cut: bool = False,
) -> tuple[list[Example], int]:
    """Encode the traces. Return the examples and the number of traces left out.

    A trace is left out if it has more than `longest` tokens or no label. With `cut`, a
    trace that is too long is instead cut off after `longest` tokens.

    Unless `truncation` is `as-labelled`, half of the traces are cut after a step chosen uniformly at random. An
    evaluator trained on traces that stop at their error would otherwise learn from where a trace ends. The choice
    depends on `seed` and on the position of the trace, so two copies of a trace are cut independently.
    """
    examples = []
    dropped = 0
    for place, trace in enumerate(traces):
        rng = np.random.default_rng((seed, place))
        kept = len(trace.steps)
        if truncation != "as-labelled" and rng.random() < 0.5:
            kept = int(rng.integers(1, kept + 1))
            # If only later steps are labelled, a cut would leave nothing to learn.
            if not any(map(teaches, trace.steps[:kept])):
                kept = len(trace.steps)
        example = _example(replace(trace, steps=trace.steps[:kept]), encoder)
        if cut:
            example = _beginning(example, longest)
        if len(example.ids) <= longest and (example.labels != IGNORED).any():
            examples.append(example)
        else:
            dropped += 1
    return examples, dropped


def _example(trace: Trace, encoder: Encoder) -> Example:
    encoded = encoder.encode(trace)
    labels = np.asarray([_label(step) for step in trace.steps], np.int64)[trace.owners]
    shares = np.asarray([step.share or 0.0 for step in trace.steps], np.float32)[trace.owners]
    return Example(encoded.ids, encoded.reads, labels, shares if (labels == SOFT).any() else None)


def teaches(step: Step) -> bool:
    """True if there is something to learn from a step: a label or a share."""
    return step.label is not None or step.share is not None


def _label(step: Step) -> int:
    if step.label is not None:
        return int(step.label)
    return IGNORED if step.share is None else SOFT


def _beginning(example: Example, tokens: int) -> Example:
    """Return the first `tokens` tokens of an example, and the read positions and labels among them."""
    there = example.ends < tokens
    shares = None if example.shares is None else example.shares[there]
    return Example(example.ids[:tokens], example.ends[there], example.labels[there], shares)


def padded_width(longest: int, limit: int | None) -> int:
    """Return the width to which a batch is padded if its longest example has `longest` tokens.

    The width is the next multiple of 32, because the CPU's bf16 kernels are compiled anew for every width. It is at
    most `limit`, the longest input of the model (None for no limit), unless the example itself is longer.
    """
    padded = longest + -longest % 32
    return padded if limit is None else max(longest, min(padded, limit))


def collate(batch: list[Example], limit: int | None = None) -> dict[str, Tensor]:
    """Pad a batch of examples on the right and return the tensors for `StepModel.forward`. All examples are padded
    to the width that `padded_width` returns for `limit`. The attention mask covers each example's own tokens. There
    are `shares` only if an example has any."""
    width, reads = padded_width(max(len(e.ids) for e in batch), limit), max(len(e.ends) for e in batch)
    ids = np.zeros((len(batch), width), np.int64)
    mask = np.zeros((len(batch), width), np.int64)
    ends = np.zeros((len(batch), reads), np.int64)
    labels = np.full((len(batch), reads), IGNORED, np.int64)
    for row, example in enumerate(batch):
        ids[row, : len(example.ids)] = example.ids
        mask[row, : len(example.ids)] = 1
        ends[row, : len(example.ends)] = example.ends
        labels[row, : len(example.ends)] = example.labels
    arrays: dict[str, NDArray[Any]] = {"input_ids": ids, "attention_mask": mask, "ends": ends, "labels": labels}
    if any(example.shares is not None for example in batch):
        arrays["shares"] = shares = np.zeros((len(batch), reads), np.float32)
        for row, example in enumerate(batch):
            if example.shares is not None:
                shares[row, : len(example.ends)] = example.shares
    return {name: torch.from_numpy(array) for name, array in arrays.items()}
