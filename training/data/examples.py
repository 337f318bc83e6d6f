"""Turning traces into training examples (token ids with labels at the step ends), and examples into batches.

The order of the batches depends neither on the number of processes nor on gradient accumulation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stepsight.core.prompts.encoding import Encoder
from stepsight.core.trace import Step, Trace

IGNORED = -100
"""The label value of a step end that is not supervised."""
SOFT = -1
"""The label value of a step end that is supervised by a share."""


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


EMPTY = Example(np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, IGNORED, np.int64))
"""An example without a label, for an empty part of a step."""


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
            kept_ends = example.ends < longest
            shares = None if example.shares is None else example.shares[kept_ends]
            example = Example(example.ids[:longest], example.ends[kept_ends], example.labels[kept_ends], shares)
        if len(example.ids) <= longest and (example.labels != IGNORED).any():
            examples.append(example)
        else:
            dropped += 1
    return examples, dropped


def _example(trace: Trace, encoder: Encoder) -> Example:
    encoded = encoder.encode(trace)
    unlabelled = [IGNORED if step.share is None else SOFT for step in trace.steps]
    of_steps = [soft if label is None else int(label) for label, soft in zip(trace.labels, unlabelled, strict=True)]
    labels = np.asarray(of_steps, np.int64)[trace.owners]
    shares = np.asarray([step.share or 0.0 for step in trace.steps], np.float32)[trace.owners]
    return Example(encoded.ids, encoded.reads, labels, shares if (labels == SOFT).any() else None)


def teaches(step: Step) -> bool:
    """True if there is something to learn from a step: a label or a share."""
    return step.label is not None or step.share is not None


def padded_width(longest: int, limit: int | None) -> int:
    """Return the width to which a batch is padded if its longest example has `longest` tokens.

    The width is the next multiple of 32, because the CPU's bf16 kernels are compiled again for every width. It is
    at most `limit`, the longest input of the model (None for no limit), unless the example itself is longer.
    """
    padded = longest + -longest % 32
    return padded if limit is None else max(longest, min(padded, limit))


def collate(batch: list[Example], limit: int | None = None) -> dict[str, Tensor]:
    """Pad a batch of examples on the right and return the tensors for `StepModel.forward`, with the labels.

    All examples are padded to the width that `padded_width` returns for `limit`. The attention mask covers each
    example's own tokens. There are `shares` only if an example has any.
    """
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


# The number of batches sorted by length together: enough for nearly equal lengths within a batch, but few enough
# for batches to differ between epochs.
_SORTED = 50


class Batches:
    """The batches of one process, as lists of indices into the examples.

    Each epoch is shuffled, using `seed` and the number of the epoch, and cut into stretches of many batches. Each
    stretch is sorted by length, and the batches are shuffled again, so that their length does not depend on the
    progress of the epoch. The batch with the longest example comes first, so that a lack of memory shows at once.
    With the `order` "sorted", the whole epoch is sorted by length and its batches are not shuffled. With
    "shuffled", nothing is sorted.

    An optimiser step processes `batch_size` examples on any hardware, in `accumulation` micro-batches that are each
    split over `processes`. A process whose share of a micro-batch is empty has an empty list.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_size: int,
        seed: int,
        *,
        accumulation: int = 1,
        processes: int = 1,
        process: int = 0,
        order: str = "mixed",
    ) -> None:
        self.lengths = lengths
        self.batch_size = batch_size
        self.seed = seed
        self.accumulation = accumulation
        self.processes = processes
        self.process = process
        self.order = order

    def __len__(self) -> int:
        """Return the number of optimiser steps in an epoch."""
        return -(-len(self.lengths) // self.batch_size)

    def parts(self, epoch: int) -> list[list[list[int]]]:
        """Return this process's share of each micro-batch of each optimiser step of an epoch."""
        return [
            [
                step[start : start + size][self.process :: self.processes]
                for size in [-(-len(step) // self.accumulation)]
                for start in range(0, size * self.accumulation, size)
            ]
            for step in self.steps(epoch)
        ]

    def steps(self, epoch: int) -> list[list[int]]:
        """Return the examples of each optimiser step of an epoch, over all processes."""
        # With seed + epoch, a seed's second epoch would be the next seed's first. The generator takes 32 bits.
        drawn = int(np.random.SeedSequence([self.seed, epoch]).generate_state(1)[0])
        generator = torch.Generator().manual_seed(drawn if epoch else self.seed)
        order = torch.randperm(len(self.lengths), generator=generator).tolist()
        if self.order == "shuffled":
            return [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        run = len(order) if self.order == "sorted" else _SORTED * self.batch_size
        batches = []
        for start in range(0, len(order), run):
            stretch = sorted(order[start : start + run], key=self.lengths.__getitem__, reverse=True)
            batches += [stretch[i : i + self.batch_size] for i in range(0, len(stretch), self.batch_size)]
        if self.order == "sorted":
            return batches
        mixed = [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]
        longest = max(mixed, key=lambda batch: self.lengths[batch[0]])
        mixed.remove(longest)
        return [longest, *mixed]
