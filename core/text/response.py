"""A model's response as it arrives: its line breaks, list items and step tokens in all notations, and the parts
that are not judged, which are the prompt, thinking, and openings such as "Sure!".
"""

import re
from collections.abc import Sequence

from stepsight.core.text.marks import STYLES, match_mark
from stepsight.core.text.signs import INVISIBLE, SPACES, words

_THINKING = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ("<seed:think>", "</seed:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<ds_think>", "</ds_think>"),
    ("<|think|>", "</|think|>"),
    ("<|thinking|>", "</|thinking|>"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("[think]", "[/think]"),
    *(
        (f"{before}{name}{after}", f"{before}/{name}{after}")
        for name in ("reflection", "reflect", "self_reflection", "critique", "planning", "plan", "inner_monologue")
        for before, after in ("<>", "[]")
    ),
    ("◁think▷", "◁/think▷"),
    ("<|channel>thought", "<channel|>"),
    ("<unused94>thought", "<unused95>"),
)
# The thoughts of gpt-oss, which have their own turn. Its end token also ends turns of other models.
_ANALYSIS = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>analysis(?: [^<>]{0,40})?<\|message\|>(.*?)"
    r"(?:<\|end\|>|(?=<\|start\|>)|\Z)",
    re.DOTALL,
)
# Before a short answer, these tags hold the solution itself.
_WORKING = (("<reasoning>", "</reasoning>"), ("<analysis>", "</analysis>"), ("<scratchpad>", "</scratchpad>"))
_LONGEST_ANSWER = 80
_ANSWER_TAG = re.compile(r"</?(?:answer|solution|response)>", re.IGNORECASE)

# The special tokens of chat templates at the beginning and at the end of a model's turn.
_TURN = re.compile(
    r"<\|im_start\|>[ \t]*assistant[ \t]*\n?|<\|start_header_id\|>assistant<\|end_header_id\|>|<start_of_turn>model"
    r"|<\|turn>model|<\|assistant\|>|<｜Assistant｜>|\[/INST\]|<\|(?:START_OF_TURN_TOKEN|START_RESPONSE)\|>"
    r"(?:<\|CHATBOT_TOKEN\|>)?|(?:<\|start\|>assistant)?<\|channel\|>final(?: [^<>]{0,40})?<\|message\|>"
    r"|<\|start\|>assistant<\|message\|>|<\|header_start\|>assistant<\|header_end\|>"
    r"|(?<=\n)### (?:Response|Assistant|Solution):(?=\s)"
)
_TURN_END = re.compile(
    r"<\|(?:im_end|eot_id|end_of_text|endoftext|end|return|eom_id|eot|assistant_end|END_OF_TURN_TOKEN|END_RESPONSE)\|>"
    r"|</s>|<eos>|<end_of_turn>|<turn\|>|<｜end▁of▁sentence｜>|\[EOS\]"
)
_SIGN = re.compile(r"<[|｜stbe/]|###|\[[/E]")
_TOKEN = re.compile(
    rf"{_TURN.pattern}|{_TURN_END.pattern}|<s>|<bos>|<\|im_start\|>|<\|start_header_id\|>|<\|end_header_id\|>"
    r"|<start_of_turn>|<\|begin_of_text\|>|<｜begin▁of▁sentence｜>"
)
_DIALOGUE = re.compile(
    r"\s*(?:(?:Human|User):\s.*?\n[ \t]*+)?(?:Assistant|AI|Model):\s+|\s*assistant\n+(?=\S)", re.DOTALL
)
# The first of two tags around the whole solution.
_WHOLE = re.compile(r"\s*<(\|begin_of_)?(answer|solution|response|output|final)(?(1)\|)>", re.IGNORECASE)
# Every word of an opening is one of these, and at least one is in `_OPENERS`. It says nothing about the problem.
_OPENERS = words(
    """
    sure certainly course absolutely okay ok alright hello hi hey gladly definitely happy glad great
    solution solutions explanation step steps step-by-step stepwise solve solving proof
    """
)
_WORDS = _OPENERS | words(
    """
    a about all an and answer answering approach at be begin break breakdown breaking by calculation
    calculations can carefully clear clearly complete could detail detailed determine do down each
    example explain find finding follow following for get go going good have help here here's how i i'd
    i'll in into is it its let let's lets logically look manner me method my need now of one order our
    out please problem proceed process provide provided question reach reasoning right s should show
    simple small smaller so solved start stepping systematic systematically tackle take that that's the
    then there these thing think this through to together us use using walk want we we'll we're we've
    will with work working would you your math mathematics mathematical word given below as follows
    thanks thank now
    """
)
_PIECE = re.compile(r"[^\n]{0,160}?(?:[.!:](?=[\s*_]|$)|$)[*_]{0,3}", re.MULTILINE)
_SIGNS = re.compile(r"[#*_>\s,.!:;—–\"“”()-]+")
_SPACE = re.compile(r"\s*")
_MOST, _WIDEST = 6, 100
_LINE_END = re.compile(r"[ \t]*(?:\n|$)")


def thinking_in(aside: str) -> str:
    """Return the thinking in a part that `set_openings_aside` set aside, without its tags, or "" if the part is
    something else, such as a prompt."""
    if analysis := _ANALYSIS.fullmatch(aside):
        return analysis[1].strip()
    lower = aside.lower()
    for opener, closer in (*_THINKING, *_WORKING):
        if lower.endswith(closer):
            start = len(opener) if lower.startswith(opener) else 0
            return aside[start : -len(closer)].strip()
    return ""


def unclosed_thought(text: str) -> str:
    """Return the tag with which a response begins, such as `<think>`, if it opens thinking that never ends.
    Otherwise return ""."""
    text = text.strip()
    analysis, lower = _ANALYSIS.match(text), text.lower()
    if analysis and analysis.end() == len(text) and not lower.endswith("<|end|>"):
        return text[: text.index("<|message|>")]
    opener, closer = next((pair for pair in _THINKING if lower.startswith(pair[0])), ("", ""))
    return text[: len(opener)] if opener and closer not in lower else ""


def set_thoughts_aside(text: str) -> tuple[str, list[str]]:
    """Split a model's turn into its text and its thoughts without their tags. Nothing else is set aside, and a turn
    without a thought is returned unchanged."""
    rest, asides = _set_thinking_aside(text, _THINKING)
    if analysis := [match[1].strip() for match in _ANALYSIS.finditer(rest)]:
        rest = _TOKEN.sub("", _ANALYSIS.sub("", rest)).strip()
    return rest, list(filter(None, [*map(thinking_in, asides), *analysis]))


def set_openings_aside(text: str) -> tuple[str, list[str]]:
    """Split a response into the solution and the parts before it that do not belong to it. Returns the solution,
    and these parts in text order.

    If no solution would remain, the whole text is returned as the solution. A response that was cut off in the
    middle of its thinking is therefore judged.
    """
    rest, asides = _set_thinking_aside(text, _THINKING)
    asides += [match[0].strip() for match in _ANALYSIS.finditer(rest) if match[1].strip()]
    rest = _ANALYSIS.sub("", rest)
    rest, before, after = _set_turns_aside(rest)
    answered, working = _set_thinking_aside(rest, _WORKING)
    if working and (len(_ANSWER_TAG.sub("", answered).strip()) > _LONGEST_ANSWER or "\n" in _unwrap(answered)):
        rest, asides = answered, [*asides, *working]
    rest = _unwrap(rest)
    if not rest.strip():
        return text, []
    asides = [*before, *asides]
    opening = _opening(rest)
    if opening:
        asides.append(rest[:opening].strip())
    return rest[opening:].strip("\n"), [*asides, *after]


def _unwrap(text: str) -> str:
    """Return a solution without tags that enclose all of it. A solution without such tags is returned unchanged."""
    whole = _WHOLE.match(text)
    if whole is None:
        return text
    name, inner = whole[2].lower(), text[whole.end() :].strip()
    for closer in (f"</{name}>", f"<|end_of_{name}|>"):
        if inner[-len(closer) :].lower() == closer:
            inner = inner[: -len(closer)].rstrip()
            break
    return text if _ANSWER_TAG.search(inner) else inner


def _set_turns_aside(text: str) -> tuple[str, list[str], list[str]]:
    """Find the model's last turn in a text written with a chat template. Returns that turn, and the texts before
    and after it. If the text is not a chat, all of it is returned as the turn."""
    dialogue = _DIALOGUE.match(text)
    if dialogue is None and not _SIGN.search(text):
        return text, [], []
    turns = list(_TURN.finditer(text))
    start, stop = 0, len(text)
    for turn in reversed(turns):
        if _TOKEN.sub("", text[turn.end() : stop]).strip():
            start = turn.end()
            break
        stop = turn.start()
    if not start and dialogue and text[dialogue.end() :].strip():
        start = dialogue.end()
    end = _TURN_END.search(text, start)
    stop = end.start() if end else len(text)
    if not _TOKEN.sub("", text[start:stop]).strip():
        return text, [], []
    outer = (text[:start], text[end.end() :] if end else "")
    before, after = ([part] if (part := _TOKEN.sub("\n", text).strip()) else [] for text in outer)
    return _TOKEN.sub("", text[start:stop]).strip(), before, after


def _set_thinking_aside(text: str, signs: Sequence[tuple[str, str]]) -> tuple[str, list[str]]:
    asides: list[str] = []
    lower = text.lower()
    # If lower-casing changes the length, positions in one text are not valid in the other.
    lower = lower if len(lower) == len(text) else text
    for opener, closer in signs:
        pieces, position = [], 0
        while (stop := lower.find(closer, position)) >= 0:
            # The opening tag may be in the prompt instead of the answer.
            start = lower.find(opener, position, stop)
            start = start if start >= 0 else position
            stop += len(closer)
            pieces.append(text[position:start])
            if text[start:stop].lower().replace(opener, "").replace(closer, "").strip():
                asides.append(text[start:stop].strip())
            position = stop
        if position:
            text = "".join((*pieces, text[position:])).strip()
            lower = text.lower() if len(text.lower()) == len(text) else text
    return text, asides


def _opening(text: str) -> int:
    """Return the index at which an opening such as "Sure!" ends, or 0 if the text has no opening or nothing follows
    it."""
    position = 0
    if match_mark(STYLES[0], text.partition("\n")[0]):
        return 0
    for _ in range(_MOST):
        piece = _PIECE.match(text, position)
        if piece is None or not _is_opening(piece[0], ends_line=_LINE_END.match(text, piece.end()) is not None):
            break
        position = piece.end()
        position += len(_SPACE.findall(text, position, position + _WIDEST)[0])
    return position if text[position:].strip() else 0


def _is_opening(piece: str, ends_line: bool) -> bool:
    words = [
        word.replace("’", "'") for word in _SIGNS.sub(" ", piece.lower().replace("step-by-step", "steps")).split()
    ]
    if not words or len(words) > 25 or not set(words) <= _WORDS:
        return False
    # "Solve" without punctuation after it is the beginning of a sentence that does not end in this piece.
    return not _OPENERS.isdisjoint(words) and (ends_line or piece.rstrip("*_ ").endswith((".", "!", ":")))


STEP_TOKEN = re.compile(r"<extra_0>|(?<![^\W\d])ки(?![^\W\d])")
"""The step tokens of Qwen2.5-Math-PRM and of Math-Shepherd. The latter also ends many Russian words."""

# Tags around steps or between them, such as `<step>`, `</step_2>`, `<|end_of_step|>`, `[STEP]` and `[SEP]`.
_STEP_TAG = re.compile(
    rf"{STEP_TOKEN.pattern}"
    r"|<\|?/?(?:(?:new|next|end_of|begin_of|start_of|end|start)_?)?(?:reasoning_?)?(?:steps?|paragraph)"
    r"(?:_?(?:end|start|sep))?"
    r"(?:[ _:#-]?\d{1,4}|\s[^<>]{1,80})?\|?/?>"
    r"|\[/?STEP\]|\[/STEP[ _-]?\d{1,4}\]|\[SEP\]|<\|?sep\|?>|<\|?prm\|?>"
    # Reserved tokens of vocabularies, one of which an evaluator may use.
    r"|<\|?(?:reserved_(?:special_)?token|extra(?:_id)?|unused_?(?:token)?|special|placeholder)_?\d{1,4}\|?>"
    r"|\[unused\d{1,4}\]",
    re.IGNORECASE,
)

_LINE_ENDS = re.compile("\r\n?|[\x85\u2028\x0b]")
_PARAGRAPH_ENDS = re.compile("[\u2029\x0c]")
# Lines with only white space are blank anyway; these also contain invisible characters.
_INVISIBLE_LINE = re.compile(rf"^[ \t{SPACES}]*+[{INVISIBLE}][ \t{SPACES}{INVISIBLE}]*+$", re.MULTILINE)
_FENCED = re.compile(r"(```.*?```|~~~.*?~~~)", re.DOTALL)
_WRAPPED = re.compile(
    r"(```|~~~)[ \t]*(?:markdown|md|text|txt|plaintext|latex|tex|json)[ \t]*\n(.*)\n\1", re.DOTALL
)
_ESCAPED_BREAK = re.compile(r"(?:\\r)?\\n(?:(?:\\r)?\\n)?(?![a-z])")
_ESCAPED_BLANK = re.compile(r"\\n(?:\\r)?\\n(?![a-z])")

_TAGS = re.compile(
    r"<(?:br|li|p|b|strong|h[1-6]|answer)\b|</(?:p|div|solution|reasoning|response|verification|check)>|\\item\b",
    re.IGNORECASE,
)
_BLANKS = r"(?<![ \t])[ \t]*"
_LINE_START = r"(?:\n|(?<![ \t]))[ \t]*"
# Each notation and its meaning in plain text, in the order in which they are replaced. White space before a sign is
# matched only from its beginning; otherwise a long run of it would take quadratic time.
_NOTATIONS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), plain)
    for pattern, plain in (
        (rf"{_BLANKS}<br[ \t]*/?>[ \t]*\n?", "\n"),
        (r"(?<!\s)\s*<li(?: [^<>]{0,200})?>\s*", "\n- "),
        (rf"(?<!\s)\s*</li>|{_LINE_START}<[ou]l(?: [^<>]{{0,200}})?>", ""),
        (rf"{_LINE_START}\\begin\{{(?:enumerate|itemize)\}}(?:\[[^\]\n]{{0,80}}\])?", ""),
        (r"(?<!\s)\s*\\item\b(?:\[[^\]\n]{0,20}\])?\s*", "\n- "),
        (
            rf"{_LINE_START}(?:</[ou]l>|\\end\{{(?:enumerate|itemize)\}}"
            r"|</?(?:p|div|section)(?: [^<>]{0,200})?>)",
            "\n\n",
        ),
        (r"</?(?:b|strong)>", "**"),
        (rf"{_LINE_START}<h[1-6](?: [^<>]{{0,200}})?>[ \t]*", "\n\n### "),
        (rf"{_BLANKS}</h[1-6]>", "\n\n"),
        (rf"{_LINE_START}</?(?:solution|reasoning|response|verification|check)>[ \t]*\n?", "\n"),
        (r"<answer>\s*+([^\s<][^\n<]{0,199}?)\s*</answer>", r"<answer>\1</answer>"),
        (r"(?<=\S)[ \t]*(?=<answer>)", "\n"),
    )
)


def plain_lines(text: str) -> str:
    """Normalise the line breaks of a text to line feeds, and remove white space and byte order marks around the
    text. Lines without visible characters become empty."""
    text = _PARAGRAPH_ENDS.sub("\n\n", _LINE_ENDS.sub("\n", text))
    if not text.isascii():
        text = _INVISIBLE_LINE.sub("", text)
    return text.strip().strip("\ufeff\u200b").strip()


def unwrapped(text: str) -> str:
    """Return a text as it was before a program put it in a code fence or escaped its line breaks. A text without
    either is returned unchanged."""
    if wrapped := _WRAPPED.fullmatch(text):
        text = wrapped[2].strip()
    # A text on one line with escaped line breaks was printed by a program. LaTeX such as \neq is not a line break.
    is_escaped = "\n" not in text and not text.startswith(("{", "[", '"', "'")) and _ESCAPED_BLANK.search(text)
    return _ESCAPED_BREAK.sub(lambda match: "\n" * match[0].count("\\n"), text) if is_escaped else text


def marked_up_lines(text: str) -> str:
    """Replace the line breaks, list items and paragraphs of HTML and LaTeX in a text by plain ones. Code is not
    changed."""
    if not _TAGS.search(text):
        return text
    pieces = _FENCED.split(text)
    for place in range(0, len(pieces), 2):
        for notation, plain in _NOTATIONS:
            pieces[place] = notation.sub(plain, pieces[place])
    return "".join(pieces)


def at_step_tokens(text: str) -> list[str]:
    """Split a text at its step tokens or step tags. The result is empty if the text has none."""
    return [part for part in _STEP_TAG.split(text) if part.strip()] if _STEP_TAG.search(text) else []
