"""An arithmetic plan: a story's chain told in steps, with the checks and redundant steps it offers."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from stepsight.training.synth import wording
from stepsight.training.synth.block import Block, split
from stepsight.training.synth.chain import Chain, Draw, draw_chains
from stepsight.training.synth.formula import Values
from stepsight.training.synth.inspection import Inspection
from stepsight.training.synth.plan import Filler, Line, Plan
from stepsight.training.synth.plant import ANSWER, MISREAD
from stepsight.training.synth.story import Story
from stepsight.training.synth.style import Style, capital, signed

OUTLINE_RATE = 0.3
JUMP_RATE = 0.35
BARE_RATE = 0.5
READ_RATE = 0.45
ANSWER_RATE = 0.85


@dataclass(frozen=True)
class _Telling:
    """Everything drawn once for a plan; `rng` draws the wording."""

    story: Story
    draw: Draw
    stated: Chain
    blocks: tuple[Block, ...]
    style: Style
    read: str | None
    outlined: bool
    rng: random.Random

    @property
    def right(self) -> Chain:
        return self.draw.right

    def block_line(self, block: Block, end: str) -> Line:
        """One step; both versions draw from the same place in their lists of templates."""
        bare = len(block.indices) > 1 and self.rng.random() < BARE_RATE
        place, key = self.rng.random(), block.last(self.right).op.key
        stated = self._say(block, self.stated, bare, place, end)
        right = self._say(block, self.right, bare, place, end)
        return Line(stated, right, _claims(self.stated, key), _claims(self.right, key))

    def _say(self, block: Block, chain: Chain, bare: bool, place: float, end: str) -> str:
        options = self._templates(block, chain, bare)
        texts = self._texts(block, chain)
        text = self.style.fill(options[int(place * len(options))], texts, self._told(block, chain))
        return f"{text[:-1]}{end.replace('{box}', texts['box'])}." if end else text

    def _told(self, block: Block, chain: Chain) -> Values:
        """The values that a step may mention: a quantity is misread where it is first used, not before."""
        plant = self.draw.plant
        early = plant.kind == MISREAD and plant.key != self.read and plant.op > block.indices[-1]
        return {**chain.values, plant.key: self.draw.givens[plant.key]} if early else chain.values

    def _templates(self, block: Block, chain: Chain, bare: bool) -> Sequence[str]:
        link = block.last(chain)
        mistake = self.draw.plant.mistake
        if mistake and mistake.says and link.formula != link.op.parsed:
            return mistake.says
        says_own = link.op.says and link.formula == link.op.parsed
        if not says_own and " = " not in block.equation(chain, self.style):
            return wording.BARES
        return link.op.says or (wording.JUMPS if bare else wording.SAYS)

    def _texts(self, block: Block, chain: Chain) -> dict[str, str]:
        what = block.what(chain, self.draw.names, self.style)
        value = self.style.number(block.result(chain)) + block.last(chain).op.unit
        equation = block.equation(chain, self.style)
        return self.draw.names | {
            "what": what,
            "What": capital(what),
            "eq": self.style.math(equation),
            "weq": self.style.math(f"{what.replace('$', '')} = {equation}"),
            "wres": self.style.math(f"{what.replace('$', '')} = {value}"),
            "res": self.style.math(value),
            "box": self.style.boxed(value),
        }

    def read_line(self, key: str) -> Line:
        noun = self.story.givens[key].noun.format(**self.draw.names)
        template = self.rng.choice(wording.READS)

        def say(chain: Chain) -> str:
            value = self.style.math(self.style.number(chain.values[key]))
            return self.style.fill(template, {"v": value, "noun": noun}, {})

        return Line(say(self.stated), say(self.right), _claims(self.stated, key), _claims(self.right, key))

    def outline_line(self) -> Line:
        first, last = (
            block.what(self.right, self.draw.names, self.style) for block in (self.blocks[0], self.blocks[-1])
        )
        if self.story.outlines:
            text = self.style.fill(self.rng.choice(self.story.outlines), self.draw.names, self.draw.givens)
        else:
            text = self.style.fill(self.rng.choice(wording.OUTLINES), {"first": first, "what": last}, {})
        return Line(text, text)

    def answer_line(self) -> Line:
        template = self.rng.choice(self.story.answers or wording.ANSWERS)

        def say(chain: Chain) -> str:
            unit = chain.links[chain.answered].op.unit
            box = self.style.boxed(self.style.number(chain.answer) + unit)
            what = self.blocks[-1].what(chain, self.draw.names, self.style)
            texts = self.draw.names | {"box": box, "what": what, "What": capital(what)}
            return self.style.fill(template, texts, chain.values)

        right, stated = {"answer": str(self.right.answer)}, {"answer": str(self.stated.answer)}
        return Line(say(self.stated), say(self.right), stated, right)

    def redo(self, line: int, first: int, offset: int) -> str:
        """The right equations of the blocks from the focus to `line`."""
        shown = [block for i, block in enumerate(self.blocks) if first <= i <= line - offset]
        answer = self.style.number(self.right.answer) + self.blocks[-1].last(self.right).op.unit
        if self.draw.plant.kind == ANSWER:
            return f"So the answer is {self.style.math(answer)}."
        if not shown:
            key = self.draw.plant.key
            noun = self.story.givens[key].noun.format(**self.draw.names)
            return f"So we use {self.style.number(self.draw.givens[key])} {noun}."
        parts = [self.style.math(block.equation(self.right, self.style)) for block in shown]
        text = "So " + ", then ".join(parts)
        if line - offset >= len(self.blocks):
            return f"{text}, and the answer is {self.style.math(answer)}."
        return f"{text} for {shown[-1].what(self.right, self.draw.names, self.style)}."

    def fillers(self, offset: int) -> list[Filler]:
        """Restating the question, a given or a result, going there and back, computing what nobody needs."""
        found = [self._ask(), self._repeat(), self._aside(), self._parity()]
        for i, block in enumerate(self.blocks):
            found += [self._recall(i + offset, block), self._detour(i + offset, block)]
        return [filler for filler in found if filler]

    def _ask(self) -> Filler:
        what = self.blocks[-1].what(self.right, self.draw.names, self.style)
        text = self.style.fill(self.rng.choice(wording.ASKS), {"what": what}, {})
        return Filler(-1, "restating", text, text)

    def _repeat(self) -> Filler | None:
        key = self.rng.choice(list(self.story.givens))
        noun = self.story.givens[key].noun.format(**self.draw.names)
        if not noun:
            return None
        value = self.style.math(self.style.number(self.draw.givens[key]))
        text = self.style.fill(self.rng.choice(wording.REPEATS), {"v": value, "noun": noun}, {})
        return Filler(-1, "restating", text, text)

    def _recall(self, line: int, block: Block) -> Filler:
        template = self.rng.choice(wording.RECALLS)
        texts = [self.style.fill(template, self._texts(block, chain), {}) for chain in (self.stated, self.right)]
        return Filler(line, "restating", *texts)

    def _detour(self, line: int, block: Block) -> Filler:
        template, by = self.rng.choice(wording.DETOURS), self.rng.randint(2, 9)
        times = self.rng.random() < 0.5
        texts = []
        for chain in (self.stated, self.right):
            c = block.result(chain)
            there, back = (c * by, "/") if times else (c + by, "-")
            first, again = self.style.number(c), self.style.number(there)
            parts = {
                "there": self.style.math(f"{first} {'*' if times else '+'} {by} = {again}"),
                "back": self.style.math(f"{again} {back} {by} = {first}"),
            }
            texts.append(self.style.fill(template, parts, {}))
        return Filler(line, "detour", *texts)

    def _aside(self) -> Filler | None:
        """A sum or a double that lies on no way to the answer."""
        values = sorted(int(value) for value in self.draw.givens.values())
        a, b = self.rng.sample(values, 2) if len(values) > 1 else (values[0], self.rng.randint(2, 9))
        found = {f"{a} + {signed(b)} = {a + b}": a + b, f"2 * {abs(a)} = {2 * abs(a)}": 2 * abs(a)}
        needed = {*self.draw.right.values.values(), *self.draw.faulty.values.values()}
        options = [equation for equation, value in found.items() if value not in needed]
        if not options:
            return None
        equation = self.rng.choice(options)
        text = self.style.fill(self.rng.choice(wording.ASIDES), {"eq": self.style.math(equation)}, {})
        return Filler(-1, "aside", text, text)

    def _parity(self) -> Filler:
        value = self.rng.choice(list(self.draw.givens.values()))
        parity = "odd" if value % 2 else "even"
        texts = {"v": self.style.math(self.style.number(value)), "parity": parity}
        text = self.style.fill(self.rng.choice(wording.PARITIES), texts, {})
        return Filler(-1, "aside", text, text)


def _claims(chain: Chain, key: str) -> dict[str, str]:
    return {key: str(chain.values[key])}


def plan_story(story: Story, wrong: bool, rng: random.Random, larger: bool = False) -> Plan:
    """Draw a plan of `story`, with its error if `wrong`; `larger`: on numbers beyond those of training."""
    draw = draw_chains(story, rng, larger)
    plant = draw.plant
    style = Style.draw(rng, story.decimals)
    stated = draw.faulty if wrong else draw.right
    blocks = tuple(split(draw.right, JUMP_RATE, rng))
    read = _draw_read(story, draw, rng)
    outlined = rng.random() < OUTLINE_RATE
    telling = _Telling(story, draw, stated, blocks, style, read, outlined, rng)
    first = next(i for i, block in enumerate(blocks) if plant.op in block.indices)
    offset = int(outlined) + int(read is not None)
    focus = first + offset
    if plant.kind == ANSWER:
        focus = len(blocks) + offset
    elif plant.kind == MISREAD and read == plant.key:
        focus = offset - 1
    inspection = Inspection(story, draw, stated, blocks, style, offset, focus, rng)
    return Plan(
        problem=_problem(story, draw, style, rng),
        lines=_lines(telling),
        focus=focus,
        kind=plant.kind,
        wrong=wrong,
        checks=tuple(inspection.checks()),
        fillers=tuple(telling.fillers(offset)),
        redo=lambda line: telling.redo(line, first, offset),
        givens={key: str(value) for key, value in draw.givens.items()},
        relations={op.key: op.formula for op in story.ops} | {"answer": story.ops[-1].key},
    )


def _draw_read(story: Story, draw: Draw, rng: random.Random) -> str | None:
    """The given that a step reads off the problem, if any."""
    named = [key for key, given in story.givens.items() if given.noun]
    wants, key = rng.random() < READ_RATE, rng.choice(named) if named else None
    if not story.reads or not wants:
        return None
    return draw.plant.key if draw.plant.kind == MISREAD and draw.plant.key in named else key


def _problem(story: Story, draw: Draw, style: Style, rng: random.Random) -> str:
    return style.problem(rng.choice(story.texts), story.words(draw.givens, draw.names, rng), draw.givens)


def _lines(telling: _Telling) -> tuple[Line, ...]:
    rng, last = telling.rng, len(telling.blocks) - 1
    ends_apart = rng.random() < ANSWER_RATE or last < 2 or telling.draw.plant.kind == ANSWER
    lines = [telling.outline_line()] if telling.outlined else []
    lines += [telling.read_line(telling.read)] if telling.read else []
    for i, block in enumerate(telling.blocks):
        lines.append(telling.block_line(block, "" if ends_apart or i < last else ", so the answer is {box}"))
    return (*lines, telling.answer_line()) if ends_apart else tuple(lines)
