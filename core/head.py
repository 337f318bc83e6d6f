"""Score heads: what turns a hidden state into the three logits of neg, neu and pos."""

from torch import Tensor, nn

from core.label import Label
from core.outputs import Outputs

Rows = tuple[int | None, int | None, int | None]
"""For neg, neu and pos the class of a checkpoint's head that stands for it; None where no class does."""

THREE_WAY: Rows = (0, 1, 2)
VALIDITY: Rows = (0, None, 1)
"""The rows of a head of two classes, wrong and right."""


def outputs_of(rows: Rows) -> Outputs:
    """What an evaluator with these rows says of a sub-step."""
    return Outputs.VALIDITY if rows[Label.NEU] is None else Outputs.THREE_WAY


def linear_head(weight: Tensor, bias: Tensor | None = None, rows: Rows = THREE_WAY) -> nn.Linear:
    """A head of three logits from the `weight`, shape (classes, hidden), and `bias` of a checkpoint's.

    A label without a class gets the logit -inf, whatever the hidden state, and so the probability 0: with two
    classes the probabilities are `(1 - v, 0, v)`, with `v` the softmax of the two.
    """
    complete = None not in rows
    head = nn.Linear(weight.shape[1], len(Label), bias=bias is not None or not complete, dtype=weight.dtype)
    new = weight.new_zeros(len(Label), weight.shape[1])
    shift = weight.new_zeros(len(Label))
    for label, row in enumerate(rows):
        if row is None:
            shift[label] = -float("inf")
            continue
        new[label] = weight[row]
        if bias is not None:
            shift[label] = bias[row]
    head.weight = nn.Parameter(new)
    if head.bias is not None:
        head.bias = nn.Parameter(shift)
    return head
