"""Rendering chats with a checkpoint's own chat template."""

from collections.abc import Sequence

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import read_bytes, read_json
from stepsight.core.formats.chat_template import render_chat
from stepsight.core.models.checkpoint import Checkpoint

# The date that Llama 3.1's template names by default, so that scores do not depend on the day.
_DATE = "26 Jul 2024"


def rendered_chat(checkpoint: Checkpoint, turns: Sequence[tuple[str, str]]) -> str:
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


def _chat_template(checkpoint: Checkpoint) -> str:
    """Return the chat template from a file of its own or from tokenizer_config.json. Raises `UserError` if neither
    exists."""
    folder = checkpoint.tokenizer.folder
    file = folder / "chat_template.jinja"
    if file.is_file():
        return read_bytes(file).decode("utf-8")
    for name in ("chat_template.json", "tokenizer_config.json"):
        path = folder / name
        found = read_json(path).get("chat_template") if path.is_file() else None
        if isinstance(found, list):
            named = [one for one in found if isinstance(one, dict)]
            found = next((one.get("template") for one in named if one.get("name") == "default"), None)
        if isinstance(found, str):
            return found
    raise UserError(
        f"{checkpoint.folder}: there is no chat template.", "Copy tokenizer_config.json or chat_template.jinja too."
    )
