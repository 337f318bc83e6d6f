"""Rendering untrusted chat templates in a separate process.

The process is `python -m stepsight.core.formats.chat_template`. Transformers' sandbox keeps a template away from
files and Python's internals. It does not keep a template from computing forever or using up all memory, whereas a
process can be limited and killed.
"""

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any

SECONDS = 5
"""Processor time after Transformers is loaded; the templates of public models take a hundredth of it."""
MEMORY = 500_000_000
"""Bytes that a template may use beyond those of Transformers itself."""

LONGEST = 1_000_000
"""The longest chat, in characters."""

# Loading Transformers takes seconds, on a busy machine many.
_PATIENCE = 120
_KEPT = 64


class TemplateError(ValueError):
    """Raised when a template does not render a chat. The message gives the reason."""


def render_chat(template: str, chat: Sequence[Mapping[str, str]], names: Mapping[str, str]) -> str:
    """Render a chat with a template. `names` holds additional template variables. Raises `TemplateError` if the
    template fails or exceeds its limits on time and memory."""
    bounds = {"seconds": SECONDS, "memory": MEMORY}
    return _rendered(json.dumps({"template": template, "chat": list(chat), "names": dict(names), **bounds}))


@lru_cache(_KEPT)
def _rendered(asked: str) -> str:
    command = [sys.executable, "-m", __name__]
    try:
        done = subprocess.run(command, input=asked, capture_output=True, encoding="utf-8", timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        raise TemplateError("it takes too long") from None
    lines = done.stdout.splitlines()
    if not lines:
        raise TemplateError("it takes too long or too much memory")
    answer = json.loads(lines[-1])
    if "error" in answer:
        raise TemplateError(answer["error"])
    return str(answer["text"])


def _render(asked: Mapping[str, Any]) -> dict[str, str]:
    # It brings Transformers.
    from transformers.utils.chat_template_utils import render_jinja_template

    _bound(asked["seconds"], asked["memory"])
    try:
        rendered: Any = render_jinja_template([asked["chat"]], chat_template=asked["template"], **asked["names"])
    except MemoryError:
        return {"error": "it takes too much memory"}
    except Exception as error:  # a template may raise whatever it likes
        return {"error": f"{error}" or type(error).__name__}
    text = str(rendered[0][0])
    return {"text": text} if len(text) <= LONGEST else {"error": f"it writes {len(text):,} characters"}


def _bound(seconds: int, memory: int) -> None:
    """Limit the CPU time and memory of this process, if the system supports that. If it does not, the only limit is
    that the caller waits at most `_PATIENCE`."""
    try:
        import resource
    except ImportError:
        return
    last = ceil(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (last, last))
    pages = Path("/proc/self/statm")
    if pages.is_file():
        taken = int(pages.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + memory, taken + memory))


if __name__ == "__main__":
    print(json.dumps(_render(json.load(sys.stdin))))
