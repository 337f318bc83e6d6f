"""Requests to a vLLM server about token ids: the class scores of each token, or the probability of the next token.

These are the routes of vLLM 0.32, abbreviated:

    GET /v1/models          {"data": [{"id": "prm", "root": "Qwen/Qwen2.5-Math-PRM-7B", "max_model_len": 4096, …}]}
    POST /tokenize          {"model": "prm", "prompt": "2 + 3", "return_token_strs": true, …}
                            {"tokens": [17, 488, 220, 18], "token_strs": ["2", "Ġ+", "Ġ", "3"], …}
    POST /pooling           {"model": "prm", "input": [9707, …], "task": "token_classify", "use_activation": false}
                            {"data": [{"index": 0, "data": [[0.91, -1.2], …]}], …}
    POST /v1/completions    {"model": "prm", "prompt": [9707, …], "max_tokens": 1, "logprobs": 1,
                             "logprob_token_ids": [387, 648], "return_tokens_as_token_ids": true}
                            {"choices": [{"logprobs": {"top_logprobs": [{"token_id:387": -1.3, …}]}, …}], …}

With `"encoding_format": "base64"` the class scores are returned as little-endian float32. There is one row per
token or, if the server pools by steps, one row per token that ends a step.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepsight.core.arrays import Floats32
from stepsight.core.inference_servers.server import Server, ServerError

_HINT = "Check that a vLLM server runs there, and its version."


@dataclass(frozen=True)
class ServedModel:
    """A model that a server lists.

    `name` is its name on the server, and `root` the path from which the server loaded it. `context` is the maximum
    input length in tokens, or None if the server does not say.
    """

    name: str
    root: str
    context: int | None


async def find_model(server: Server, name: str) -> ServedModel:
    """Look up the model called `name`. Raises `ServerError` if the server does not have it or lists no models."""
    listed = (await server.get("models", attempts=1)).get
    try:
        models = {str(entry["id"]): entry for entry in reversed(_list(listed("data")))}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _unexpected_answer(server, "models") from None
    model = models.get(name)
    if model is None:
        names = ", ".join(map(repr, list(models)[::-1][:5])) or "none"
        raise ServerError(f"{server.url}: the server has no model {name!r}.", f"It has: {names:.300}.")
    context = model.get("max_model_len")
    root = model.get("root")
    return ServedModel(
        name,
        root if isinstance(root, str) and root.isprintable() else name,
        context if isinstance(context, int) and not isinstance(context, bool) and context > 0 else None,
    )


async def server_tokens(server: Server, model: str, text: str) -> list[tuple[int, str]] | None:
    """Tokenize a text with the server's own tokenizer. Returns the ids and names of the tokens, or None if the
    server does not provide them."""
    body = {"model": model, "prompt": text, "add_special_tokens": False, "return_token_strs": True}
    try:
        answer = await server.post("/tokenize", body, attempts=1)
    except ServerError as error:
        if error.status is None:
            raise
        return None
    try:
        ids, names = _list(answer["tokens"]), _list(answer["token_strs"])
        return [(int(number), str(name)) for number, name in zip(ids, names, strict=True)]
    except (KeyError, OverflowError, TypeError, ValueError):
        return None


async def classify_tokens(
    server: Server, model: str, ids: Sequence[int], columns: int | None = None, *, activated: bool = False
) -> Floats32:
    """Return the class scores of each token, with shape (tokens, columns). They are logits or, if `activated` is
    True, activations such as probabilities.

    `columns` is the number of classes, if known. Raises `ServerError` if the request fails, with status 404 if the
    server does not classify tokens.
    """
    body: dict[str, Any] = {
        "model": model,
        "input": ids,
        "task": "token_classify",
        "use_activation": activated,
        "encoding_format": "float" if columns is None else "base64",
    }
    if columns is not None:
        body["endianness"] = "little"
    answer = await server.post("/pooling", body)
    try:
        rows = _rows(answer["data"][0]["data"], columns)
    except (KeyError, IndexError, OverflowError, TypeError, ValueError, binascii.Error):
        raise _unexpected_answer(server, "/pooling") from None
    if not np.isfinite(rows).all():
        raise ServerError(
            f"{server.url}: the server returned numbers that are not finite.", "Serve it in another data type."
        )
    return rows


async def next_tokens(server: Server, model: str, ids: Sequence[int], tokens: Sequence[int]) -> list[float]:
    """Return the log-probability of each of `tokens` as the token after `ids`, over the whole vocabulary. Raises
    `ServerError` if the request fails, for example because the server does not support requests for specific
    tokens."""
    body = {
        "model": model,
        "prompt": ids,
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": 1,
        "logprob_token_ids": list(tokens),
        "return_tokens_as_token_ids": True,
    }
    answer = await server.post("completions", body)
    try:
        logprobs = answer["choices"][0]["logprobs"]["top_logprobs"][0]
        return [float(logprobs[f"token_id:{token}"]) for token in tokens]
    except KeyError:
        raise ServerError(
            f"{server.url}: the server does not return the probabilities of the requested tokens.",
            "Use a newer vLLM, or serve the model as a classifier: see the manual, Evaluators.",
        ) from None
    except (IndexError, OverflowError, TypeError, ValueError):
        raise _unexpected_answer(server, "completions") from None


def _rows(value: Any, columns: int | None) -> Floats32:
    """Parse the table of numbers in an answer, given as lists or in base64. Raises `ValueError` if it does not have
    `columns` columns."""
    if isinstance(value, str):
        numbers = np.frombuffer(base64.b64decode(value, validate=True), "<f4")
        return numbers.astype(np.float32).reshape(-1, columns or 1)
    rows = np.array(_list(value), np.float32)
    if rows.ndim == 1:
        # There is only one class, or no token ends a step.
        rows = rows.reshape(-1, columns or 1)
    if rows.ndim != 2 or (columns is not None and rows.shape[1] != columns):
        raise ValueError
    return rows


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError
    return value


def _unexpected_answer(server: Server, path: str) -> ServerError:
    return ServerError(f"{server.url}: the server's answer to {path} is not in vLLM's format.", _HINT)
