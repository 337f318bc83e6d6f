"""Long thoughts with known sections: calculations of the synthetic corpus, with turns of phrase between them.

The turns were written before the rules of `core.text.sections`, as people think aloud.
"""

import random
from collections.abc import Iterator

from stepsight.core.trace import Trace
from stepsight.training.synth.corpus import generate

TURNS = {
    "approach": (
        "Let me set this up from the beginning.",
        "Alternatively, I can work from the other end.",
        "Maybe there is a slicker route.",
        "Perhaps I should think about it differently.",
        "Another idea: do it piece by piece.",
        "What if I start over with the quantities as given?",
        "Let's try it in a different order.",
        "Okay, a second method.",
        "One more way to see it.",
        "Suppose we do it step by step instead.",
        "Let me approach it from scratch.",
        "Next, the other part of the question.",
        "How else could this be done?",
        "I could also go through it term by term.",
        "Case 2: the rest.",
        "Now on to the remaining piece.",
        "First, I'll write out everything.",
        "Let me try a cleaner way.",
        "A different strategy would be to go line by line.",
        "Moving on to the following part.",
    ),
    "check": (
        "Let me verify that.",
        "I want to make sure this is right.",
        "Quick sanity check.",
        "Double-checking:",
        "Does that hold up?",
        "Let's test this against the statement.",
        "To be safe, I'll confirm it.",
        "Plugging it back in:",
        "Checking with the numbers given:",
        "Is it consistent?",
        "Let me go over that again to be sure.",
        "Verification:",
        "As a check, do it backwards.",
    ),
    "doubt": (
        "Wait, that seems off.",
        "Hmm, this does not look right.",
        "Hold on a second.",
        "But that can't be.",
        "Something is wrong here.",
        "Hmm.",
        "Wait, did I misread it?",
        "I'm not convinced.",
        "That is strange.",
        "Oh no, the numbers disagree.",
        "Uh, is this really what they ask?",
        "That contradicts what I had.",
    ),
    "repair": (
        "I made a mistake above; here is the corrected version.",
        "Let me redo this properly.",
        "My error was in the arithmetic, so again:",
        "The correct calculation is this.",
        "So I need to fix the earlier line.",
        "Correcting that:",
        "Ah, I see, I slipped. It should be as follows.",
        "Let me recompute.",
        "Right, that line was incorrect; the proper one:",
        "Going back to repair it:",
        "I mixed things up. Actually:",
    ),
    "answer": (
        "So the final answer is",
        "Therefore the answer is",
        "**Final answer:**",
        "In conclusion, the result is",
        "The answer is",
        "So the answer should be",
        "Putting it all together, the answer:",
        "Final result:",
    ),
}
AFTER = {
    "approach": ("check", "doubt", "approach", "check"),
    "check": ("approach", "doubt", "approach"),
    "doubt": ("repair", "approach"),
    "repair": ("check", "approach"),
}
LENGTHS = {"doubt": 0, "check": 2, "repair": 3}


def long_thoughts(seed: int, count: int, sections: int = 12) -> Iterator[tuple[list[str], set[int]]]:
    """Yield the steps of thoughts, and the indices at which their sections after the first begin.

    A turn is a step of its own, or stands before the first words of one. The other steps are those of synthetic
    solutions, and keep their words: "Next", "Now we find", "To find", "Wait, let me check".
    """
    traces = generate(seed, 10**6)
    for number in range(count):
        rng = random.Random(f"{seed}:{number}")
        steps: list[str] = []
        borders: set[int] = set()
        kind = "approach"
        for place in range(sections):
            is_last = place == sections - 1
            turn = rng.choice(TURNS["answer" if is_last else kind])
            lines = _lines(traces, "check" if kind == "check" else "line")
            body = lines[-1:] if is_last else lines[: LENGTHS.get(kind, len(lines))]
            if place:
                borders.add(len(steps))
            steps += [turn, *body] if rng.random() < 0.5 or not body else [f"{turn} {body[0]}", *body[1:]]
            kind = rng.choice(AFTER[kind])
        yield steps, borders


def _lines(traces: Iterator[Trace], role: str) -> list[str]:
    """Return the checks of the next synthetic trace that has any, or its other steps without the answer."""
    wanted = ("check",) if role == "check" else ("line", "aside", "restating", "detour")
    for trace in traces:
        found = [text for text, own in zip(trace.substeps, trace.meta["roles"], strict=True) if own in wanted]
        if role == "check" and found:
            return found
        if len(found) >= 3:
            return found[:-1]
    raise AssertionError
