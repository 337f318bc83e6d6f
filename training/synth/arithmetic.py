"""An arithmetic plan: a story's chain told in steps, with the checks and redundant steps it offers."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from training.synth.block import Block, split
from training.synth.chain import Chain, Plant, draw_chains
from training.synth.inspection import Inspection
from training.synth.plan import Filler, Line, Plan
from training.synth.plant import MISREAD
from training.synth.story import Story
from training.synth.style import Style, capital

SAYS = (
    "{W} is {e}.",
    "{W}: {e}.",
    "{e}, so {w} is {c}.",
    "Next, {w}: {e}.",
    "Compute {w}: {e}.",
    "{e} gives {w}.",
    "We get {w} from {e}.",
    "Then {w} is {e}.",
)
JUMPS = (
    "{W} comes to {c}.",
    "In one go, {w} is {c}.",
    "Working it out, {w} is {c}.",
    "{W} works out as {c}.",
)
READS = (
    "Read off: {v} {noun}.",
    "The problem gives {v} {noun}.",
    "Given: {v} {noun}.",
    "From the problem: {v} {noun}.",
)
ANSWERS = (
    "The answer is {c}.",
    "So the answer is {c}.",
    "Answer: {c}.",
    "Hence {w} is {c}.",
    "Therefore, {c}.",
)
ASKS = ("We are asked for {w}.", "The question is about {w}.", "We want to find {w}.", "Let us find {w}.")
RECALLS = (
    "As found, {w} is {c}.",
    "Recall that {w} is {c}.",
    "To repeat, {w} is {c}.",
    "As we have seen, {w} is {c}.",
)


OUTLINES = ("First we find {f}, then {w}.", "From {f} we shall get {w}.", "Start with {f}; {w} follows.")
ISOLATIONS = ("We isolate x.", "Undo the operations one by one.", "Get x alone on one side.")
OUTLINE_RATE = 0.3
JUMP_RATE = 0.35
READ_RATE = 0.5


@dataclass(frozen=True)
class _Telling:
    """Everything drawn once for a plan; `rng` draws the wording."""

    story: Story
    givens: dict[str, int]
    names: dict[str, str]
    plant: Plant
    right: Chain
    stated: Chain
    blocks: tuple[Block, ...]
    style: Style
    read: str | None
    outlined: bool
    rng: random.Random

    def block_line(self, block: Block, bare: bool, end: str) -> Line:
        """One step; the template is drawn for the stated chain, whose signs it names."""
        says = self._says(block, bare)
        return Line(self._say(says, block, self.stated, end), self._say(says, block, self.right, end))

    def _says(self, block: Block, bare: bool) -> dict[str, str]:
        last = self.stated.links[block.indices[-1]]
        index = self.rng.random()
        choices: dict[str, Sequence[str]] = {}
        for sign in {last.sign, last.op.sign}:
            own = last.op.says or self.story.says.get(sign)
            choices[sign] = own or (JUMPS if bare else SAYS)
        return {sign: options[int(index * len(options))] for sign, options in choices.items()}

    def _say(self, says: dict[str, str], block: Block, chain: Chain, end: str) -> str:
        last = chain.links[block.indices[-1]]
        what, result = block.what(chain, self.names), block.result(chain)
        equation = f"{block.formula(chain)} = {result}"
        text = says[last.sign].format(
            W=capital(what),
            w=what,
            e=self.style.math(equation),
            q=self.style.math(f"{what} = {equation}"),
            s=self.style.math(f"{what} = {result}"),
            c=self.style.math(str(result)),
            l=last.left,
            r=last.right,
            **{f"v_{key}": value for key, value in chain.values.items()},
        )
        return text[:-1] + end.format(c=self.style.boxed(str(result))) + "." if end else text

    def read_line(self, key: str) -> Line:
        noun = self.story.givens[key].noun.format(**self.names)
        template = self.rng.choice(READS)
        texts = [
            template.format(v=self.style.math(str(chain.values[key])), noun=noun)
            for chain in (self.stated, self.right)
        ]
        return Line(*texts)

    def outline_line(self) -> Line:
        first, last = (block.what(self.right, self.names) for block in (self.blocks[0], self.blocks[-1]))
        template = self.rng.choice(ISOLATIONS if self.story.says else OUTLINES)
        text = template.format(f=first, w=last)
        return Line(text, text)

    def answer_line(self) -> Line:
        template = self.rng.choice(ANSWERS)
        texts = []
        for chain in (self.stated, self.right):
            what = self.blocks[-1].what(chain, self.names)
            texts.append(template.format(c=self.style.boxed(str(chain.answer)), w=what))
        return Line(*texts)

    def redo(self, line: int, first: int, offset: int) -> str:
        """The right equations of the blocks from the focus to `line`."""
        shown = [block for i, block in enumerate(self.blocks) if first <= i <= line - offset]
        if not shown:
            key = self.plant.key
            return f"So we use {self.givens[key]} {self.story.givens[key].noun.format(**self.names)}."
        parts = [self.style.math(f"{b.formula(self.right)} = {b.result(self.right)}") for b in shown]
        text = "So " + ", then ".join(parts)
        if line - offset >= len(self.blocks):
            return f"{text}, and the answer is {self.right.answer}."
        return f"{text} for {shown[-1].what(self.right, self.names)}."

    def fillers(self, offset: int) -> list[Filler]:
        """Restating the question or a result, going there and back, computing what nobody needs."""
        rng, style = self.rng, self.style
        asked = self.blocks[-1].what(self.right, self.names)
        ask = rng.choice(ASKS).format(w=asked if not self.story.says else "x")
        found = [Filler(-1, ask, ask)]
        for i, block in enumerate(self.blocks):
            recall, by = rng.choice(RECALLS), rng.randint(2, 9)
            texts, trips = [], []
            for chain in (self.stated, self.right):
                c, w = block.result(chain), block.what(chain, self.names)
                texts.append(recall.format(w=w, c=style.math(str(c))))
                there, back = style.math(f"{c} + {by} = {c + by}"), style.math(f"{c + by} - {by} = {c}")
                trips.append(f"{there}, and {back} again.")
            found += [Filler(i + offset, *texts), Filler(i + offset, *trips)]
        a, b = rng.sample(sorted(self.givens.values()), 2) if len(self.givens) > 1 else (3, 4)
        aside = f"By the way, {style.math(f'{a} + {b} = {a + b}')}."
        return [*found, Filler(-1, aside, aside)]


def plan_story(story: Story, wrong: bool, rng: random.Random) -> Plan:
    """Draw a plan of `story`, with its error if `wrong`."""
    givens, names, plant, right, faulty = draw_chains(story, rng)
    style = Style.draw(rng)
    stated = faulty if wrong else right
    blocks = tuple(split(right, JUMP_RATE, rng))
    reads = not story.says and rng.random() < READ_RATE
    read = (plant.key if plant.kind == MISREAD else rng.choice(list(story.givens))) if reads else None
    outlined = rng.random() < OUTLINE_RATE
    telling = _Telling(story, givens, names, plant, right, stated, blocks, style, read, outlined, rng)
    first = next(i for i, block in enumerate(blocks) if plant.op in block.indices)
    offset = int(outlined) + int(reads)
    focus = offset - 1 if reads and plant.kind == MISREAD else first + offset
    inspection = Inspection(story, givens, names, plant, right, stated, blocks, style, offset, focus, rng)
    return Plan(
        problem=style.problem(rng.choice(story.texts), story.words(givens, names, rng)),
        lines=_lines(telling),
        focus=focus,
        kind=plant.kind,
        wrong=wrong,
        checks=tuple(inspection.checks()),
        fillers=tuple(telling.fillers(offset)),
        redo=lambda line: telling.redo(line, first, offset),
    )


def _lines(telling: _Telling) -> tuple[Line, ...]:
    rng = telling.rng
    ends_apart = rng.random() < 0.85 or len(telling.blocks) < 3
    lines = [telling.outline_line()] if telling.outlined else []
    lines += [telling.read_line(telling.read)] if telling.read else []
    for i, block in enumerate(telling.blocks):
        bare = len(block.indices) > 1 and rng.random() < 0.5
        end = "" if ends_apart or i < len(telling.blocks) - 1 else ", so the answer is {c}"
        lines.append(telling.block_line(block, bare, end))
    return (*lines, telling.answer_line()) if ends_apart else tuple(lines)
