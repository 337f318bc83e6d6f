"""Rendering untrusted chat templates in a separate process.

Transformers' sandbox keeps a template away from files and Python's internals. It does not keep a template from
computing forever or using up all memory, as `core.files.child` does.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from stepsight.core.files.child import Answerer, Bounds, Child, ChildError

BOUNDS = Bounds(seconds=5, memory=500_000_000)
"""The limits of a template. Those of public models need a hundredth of this."""

LONGEST = 1_000_000
"""The longest chat, in characters."""

_KEPT = 64


class TemplateError(ValueError):
    """Raised when a template does not render a chat. The message gives the reason."""


def render_chat(template: str, chat: Sequence[Mapping[str, str]], names: Mapping[str, str]) -> str:
    """Render a chat with a template. `names` holds additional template variables. Raises `TemplateError` if the
    template fails or exceeds its limits on time and memory."""
    return _rendered(json.dumps({"template": template, "chat": list(chat), "names": dict(names)}))


@lru_cache(_KEPT)
def _rendered(asked: str) -> str:
    try:
        with Child(make_renderer, BOUNDS) as child:
            return str(child.ask(json.loads(asked)))
    except ChildError as error:
        raise TemplateError(f"{error}") from None


def make_renderer() -> Answerer:
    """Return the function by which the child renders chats."""
    # It brings Transformers.
    from transformers.utils.chat_template_utils import render_jinja_template

    def render(asked: Any, content: Iterator[bytes]) -> str:
        rendered: Any = render_jinja_template([asked["chat"]], chat_template=asked["template"], **asked["names"])
        text = str(rendered[0][0])
        if len(text) > LONGEST:
            raise TemplateError(f"it writes {len(text):,} characters")
        return text

    return render
