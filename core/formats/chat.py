"""Rendering chats with a checkpoint's own chat template, in a separate process.

Transformers' sandbox keeps a template away from files and Python's internals. It does not keep a template from
computing forever or using up all memory, as `core.files.child` does.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stepsight.core.errors import UserError
from stepsight.core.files.child import Answerer, Bounds, Child, ChildError
from stepsight.core.files.whole_files import read_bytes, read_json

if TYPE_CHECKING:
    from stepsight.core.models.checkpoint import Checkpoint

BOUNDS = Bounds(seconds=5, memory=500_000_000)
"""The limits of a template. Those of public models need a hundredth of this."""

LONGEST = 1_000_000
"""The longest chat, in characters."""

_KEPT = 64


def render_chat(template: str, chat: Sequence[Mapping[str, str]], names: Mapping[str, str]) -> str:
    """Render a chat with a template. `names` holds additional template variables. Raises `ValueError` if the
    template fails or exceeds its limits on time and memory."""
    return _render_in_child(json.dumps({"template": template, "chat": list(chat), "names": dict(names)}))


@lru_cache(_KEPT)
def _render_in_child(request: str) -> str:
    try:
        with closing(Child(make_renderer, BOUNDS)) as child:
            return str(child.ask(json.loads(request)))
    except ChildError as error:
        raise ValueError(f"{error}") from None


def make_renderer() -> Answerer:
    """Return the function by which the child renders chats."""
    # This import loads Transformers.
    from transformers.utils.chat_template_utils import render_jinja_template

    def render(request: Any, content: Iterator[bytes]) -> str:
        template, names = request["template"], request["names"]
        rendered: Any = render_jinja_template([request["chat"]], chat_template=template, **names)
        text = str(rendered[0][0])
        if len(text) > LONGEST:
            raise ValueError(f"it writes {len(text):,} characters")
        return text

    return render


# The default date of Llama 3.1's template, so that scores do not depend on the day.
_DATE = "26 Jul 2024"


def rendered_chat(checkpoint: "Checkpoint", turns: Sequence[tuple[str, str]]) -> str:
    """Return the text of a chat, rendered with the checkpoint's chat template. `turns` holds pairs of a user
    message and an assistant message. Raises `UserError` if the checkpoint has no chat template, or if the template
    fails."""
    chat = [
        {"role": role, "content": content}
        for turn in turns
        for role, content in zip(("user", "assistant"), turn, strict=True)
    ]
    special = {role: checkpoint.special_token(role) or "" for role in ("bos_token", "eos_token")}
    try:
        return render_chat(_chat_template(checkpoint), chat, {"date_string": _DATE, **special})
    except ValueError as error:
        raise UserError(
            f"{checkpoint.folder}: its chat template cannot be read ({error}).", "Copy it again."
        ) from None


def _chat_template(checkpoint: "Checkpoint") -> str:
    """Return the chat template from a file of its own or from tokenizer_config.json. Raises `UserError` if neither
    exists."""
    folder = checkpoint.tokenizer.folder
    file = folder / "chat_template.jinja"
    if file.is_file():
        return read_bytes(file).decode("utf-8")
    for name in ("chat_template.json", "tokenizer_config.json"):
        path = folder / name
        template = read_json(path).get("chat_template") if path.is_file() else None
        if isinstance(template, list):
            named = [entry for entry in template if isinstance(entry, dict)]
            template = next((entry.get("template") for entry in named if entry.get("name") == "default"), None)
        if isinstance(template, str):
            return template
    raise UserError(
        f"{checkpoint.folder}: there is no chat template.", "Copy tokenizer_config.json or chat_template.jinja too."
    )
