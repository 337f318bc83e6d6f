"""Linear equations: their solutions as chains of operations on both sides."""

from training.synth.story import Given, Op, Story, Verify

_SAYS = {
    "-": (
        "Subtract {r} from both sides: {q}.",
        "Subtracting {r} gives {s}.",
        "Take {r} away: {q}.",
        "After subtracting {r}, {q}.",
    ),
    "+": ("Add {r} to both sides: {q}.", "Adding {r} gives {s}.", "Add {r}: {q}.", "After adding {r}, {q}."),
    "/": ("Divide by {r}: {q}.", "Dividing by {r} gives {s}.", "Divide both sides by {r}: {q}.", "So {q}."),
    "*": (
        "Multiply by {r}: {q}.",
        "Multiplying by {r} gives {s}.",
        "Multiply both sides by {r}: {q}.",
        "Then {q}.",
    ),
}
_COLLECT = (
    "Collect the x terms: {e}, so we have {v_k}x + {v_b} = {v_e}.",
    "With {e}: {v_k}x + {v_b} = {v_e}.",
    "As {e}, this is {v_k}x + {v_b} = {v_e}.",
)
_ASKS = ("Solve {eq} for x.", "Find x if {eq}.", "What is x when {eq}?", "Let {eq}. Find the value of x.")


def _texts(equation: str) -> tuple[str, ...]:
    return tuple(ask.replace("{eq}", f"[{equation}]") for ask in _ASKS)


def _linear(equation: str, givens: dict[str, Given], ops: tuple[Op, ...], verify: Verify) -> Story:
    return Story(_texts(equation), givens, ops, {}, verify, _SAYS)


_A = Given(range(2, 13), "as factor of x")
_B = Given(range(3, 60), "as constant")
_C = Given(range(10, 200), "on the right")

EQUATIONS = (
    _linear(
        "{a}x + {b} = {c}",
        {"a": _A, "b": _B, "c": _C},
        (Op("s", "c", "-", "b", "{a}x"), Op("x", "s", "/", "a", "x")),
        Verify((Op("u", "a", "*", "answer"), Op("v", "u", "+", "b")), "v", "c", "substitute"),
    ),
    _linear(
        "{a}x - {b} = {c}",
        {"a": _A, "b": _B, "c": _C},
        (Op("s", "c", "+", "b", "{a}x"), Op("x", "s", "/", "a", "x")),
        Verify((Op("u", "a", "*", "answer"), Op("v", "u", "-", "b")), "v", "c", "substitute"),
    ),
    _linear(
        "{a}(x + {b}) = {c}",
        {"a": _A, "b": Given(range(2, 20), "added to x"), "c": _C},
        (Op("s", "c", "/", "a", "x + {b}"), Op("x", "s", "-", "b", "x")),
        Verify((Op("u", "answer", "+", "b"), Op("v", "a", "*", "u")), "v", "c", "substitute"),
    ),
    _linear(
        "{a}x + {b} = {d}x + {e}",
        {
            "a": Given(range(7, 20), "as factor of x on the left"),
            "d": Given(range(2, 6), "as factor of x on the right"),
            "b": _B,
            "e": Given(range(20, 150), "as constant on the right"),
        },
        (
            Op("k", "a", "-", "d", "{k}x", _COLLECT),
            Op("s", "e", "-", "b", "{k}x"),
            Op("x", "s", "/", "k", "x"),
        ),
        Verify(
            (
                Op("u", "a", "*", "answer"),
                Op("l", "u", "+", "b"),
                Op("m", "d", "*", "answer"),
                Op("r", "m", "+", "e"),
            ),
            "l",
            "r",
            "substitute",
        ),
    ),
    _linear(
        "x/{a} + {b} = {c}",
        {"a": Given(range(2, 13), "under x"), "b": _B, "c": Given(range(10, 90), "on the right")},
        (Op("s", "c", "-", "b", "x/{a}"), Op("x", "s", "*", "a", "x")),
        Verify((Op("u", "answer", "/", "a"), Op("v", "u", "+", "b")), "v", "c", "substitute"),
    ),
)
