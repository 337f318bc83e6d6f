"""A small server of vLLM's wire format, recorded from vLLM 0.32, whose answers a real network computes.

It speaks HTTP over a socket, and can be told to behave as servers do on bad days.
"""

import base64
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.models.model import ClassOrder
from tests.local_server import LocalServer


class Network(Protocol):
    """What a server computes."""

    def classes(self, ids: list[int]) -> np.ndarray | None:
        """Logits of each token, shape (tokens, classes); None where it has none."""

    def likely(self, ids: list[int]) -> np.ndarray | None:
        """The log-probability of each token of the vocabulary after these; None where it writes nothing."""


class Classifier:
    """The classes of a checkpoint in any format with a head of classes, in the `order` that the format's
    module says."""

    def __init__(self, folder: Path, order: ClassOrder) -> None:
        evaluator = load_evaluator(folder, dtype="float32")
        assert isinstance(evaluator, ModelEvaluator)
        self._model = evaluator.model
        self._labels = [order.index(number) for number in range(sum(place is not None for place in order))]

    @torch.inference_mode()
    def classes(self, ids: list[int]) -> np.ndarray:
        one = torch.tensor([ids])
        hidden = self._model.states(input_ids=one, attention_mask=torch.ones_like(one))
        return self._model.score(hidden)[0].float().numpy()[:, self._labels]

    def likely(self, ids: list[int]) -> None:
        return None


class LanguageModel:
    """A causal language model, by Transformers' own class."""

    def __init__(self, folder: Path) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def classes(self, ids: list[int]) -> None:
        return None

    @torch.inference_mode()
    def likely(self, ids: list[int]) -> np.ndarray:
        return self._model(input_ids=torch.tensor([ids])).logits[0, -1].log_softmax(-1).numpy()


class Converted:
    """A language model that vLLM was told to serve as a classifier, with a class for each of these tokens."""

    def __init__(self, folder: Path, tokens: list[int]) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self._tokens = tokens

    @torch.inference_mode()
    def classes(self, ids: list[int]) -> np.ndarray:
        return self._model(input_ids=torch.tensor([ids])).logits[0][:, self._tokens].numpy()

    def likely(self, ids: list[int]) -> None:
        return None


@dataclass
class Day:
    """How a server behaves, where requests that compute something count, from 1, after the first `spares`:
    `fails_every` so many it answers 500, `halves_every` it sends half of the JSON, `breaks_every` half of the bytes
    that it announced, `refuses_every` it answers 429, and `dies_after` so many it is gone. Each takes `seconds`,
    until told to `hurry`. `asks` are how many were made, `most_at_once` at the same time."""

    fails_every: int = 0
    halves_every: int = 0
    breaks_every: int = 0
    refuses_every: int = 0
    dies_after: int = 0
    seconds: float = 0.0
    key: str = ""
    spares: int = 0
    asks: int = 0
    at_once: int = 0
    most_at_once: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    hurry: threading.Event = field(default_factory=threading.Event)


@dataclass
class VllmServer:
    """Serves a `network` under a name. `step_tag`, rows of these tokens alone are given, as for Qwen2.5-Math-PRM;
    `activates` makes probabilities of all logits, whatever it is asked for; `tokenizes` is whether it has
    `/tokenize`; `ignores_chosen`, it does not know `logprob_token_ids`, as older ones."""

    network: Network
    folder: Path
    name: str = "prm"
    root: str | None = None
    context: int = 256
    step_tag: int | None = None
    activates: bool = False
    tokenizes: bool = True
    ignores_chosen: bool = False
    day: Day = field(default_factory=Day)
    port: int = 0

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve; yields the address of OpenAI's routes."""
        tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        state = self

        class Handler(_Handler):
            served = state
            own_tokenizer = tokenizer

        with LocalServer(Handler).running() as server:
            self.port = server.port
            yield f"{server.url}/v1"

    def address(self, url: str, **options: object) -> str:
        """What `--evaluator` takes for it."""
        given = {"tokenizer": self.folder, **options}
        return f"vllm:{url}#{self.name}" + "".join(f",{name}={value}" for name, value in given.items())


class _StatusError(Exception):
    """An answer that is no 200."""

    def __init__(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        super().__init__(status)
        self.status, self.body, self.headers = status, body, headers or {}


def _error(status, message, kind="BadRequestError", param=None):
    return _StatusError(status, {"error": {"message": message, "type": kind, "param": param, "code": status}})


class _Handler(BaseHTTPRequestHandler):
    served: VllmServer
    own_tokenizer: Tokenizer
    protocol_version = "HTTP/1.1"
    # One packet for head and body, as any real server sends them.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def handle(self) -> None:
        """As ever, but quiet about those who leave before they are answered."""
        with suppress(ConnectionError):
            super().handle()

    def finish(self) -> None:
        with suppress(ConnectionError):
            super().finish()

    def do_GET(self) -> None:
        self._answer(lambda body: self._models(), {})

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        content = self.rfile.read(length)
        if len(content) < length:
            # Who asked has left.
            self.close_connection = True
            return
        body = json.loads(content)
        routes = {"/tokenize": self._tokenize, "/pooling": self._pooling, "/v1/completions": self._completions}
        self._answer(routes.get(self.path, self._missing), body)

    def _answer(self, route: Any, body: dict[str, Any]) -> None:
        day = self.served.day
        computes = route in (self._pooling, self._completions)
        with day.lock:
            day.asks += computes
            number = max(0, day.asks - day.spares) if computes else 0
            day.at_once += computes
            day.most_at_once = max(day.most_at_once, day.at_once)
            if computes:
                day.bodies.append(body)
        try:
            if day.dies_after and number > day.dies_after:
                self._die()
                return
            status, answer, headers = self._computed(route, body, number)
        finally:
            with day.lock:
                day.at_once -= computes
        content = json.dumps(answer).encode()
        if status == 200 and number and day.halves_every and number % day.halves_every == 0:
            content = content[: len(content) // 2]
        length = len(content)
        if number and day.breaks_every and number % day.breaks_every == 0:
            content = content[: len(content) // 2]
            self.close_connection = True
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(length), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _computed(self, route: Any, body: dict[str, Any], number: int) -> tuple[int, Any, dict[str, str]]:
        day = self.served.day
        if number and day.seconds:
            day.hurry.wait(day.seconds)
        try:
            if day.key and self.headers.get("authorization") != f"Bearer {day.key}":
                raise _error(401, f"Unauthorized: {self.headers.get('authorization')}", "AuthenticationError")
            if number and day.fails_every and number % day.fails_every == 0:
                raise _error(500, "EngineCore encountered an issue.", "InternalServerError")
            if number and day.refuses_every and number % day.refuses_every == 0:
                refusal = _error(429, "Too many requests", "RateLimitError")
                raise _StatusError(429, refusal.body, {"retry-after": "0"})
            return 200, route(body), {}
        except _StatusError as answer:
            return answer.status, answer.body, answer.headers

    def _die(self) -> None:
        """Leave what a process that was killed does: a connection that is reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def _missing(self, body: dict[str, Any]) -> Any:
        raise _StatusError(404, {"detail": "Not Found"})

    def _models(self) -> Any:
        served = self.served
        return {
            "object": "list",
            "data": [
                {
                    "id": served.name,
                    "object": "model",
                    "created": 1795459461,
                    "owned_by": "vllm",
                    "root": served.root or str(served.folder),
                    "parent": None,
                    "max_model_len": served.context,
                    "permission": [],
                }
            ],
        }

    def _tokenize(self, body: dict[str, Any]) -> Any:
        if not self.served.tokenizes:
            self._missing(body)
        found = self.own_tokenizer.encode(body["prompt"], add_special_tokens=body["add_special_tokens"])
        names = found.tokens if body.get("return_token_strs") else None
        return {
            "count": len(found.ids),
            "max_model_len": self.served.context,
            "tokens": found.ids,
            "token_strs": names,
        }

    def _pooling(self, body: dict[str, Any]) -> Any:
        ids = self._checked(body, "input")
        logits = self.served.network.classes(ids)
        if logits is None:
            self._missing(body)
        if body["task"] != "token_classify":
            raise _error(
                400, f"Unsupported task: {body['task']!r} Supported tasks: ['token_classify']", param="task"
            )
        if body.get("use_activation", True) or self.served.activates:
            one = logits.shape[1] == 1
            logits = 1 / (1 + np.exp(-logits)) if one else np.exp(logits - logits.max(1, keepdims=True))
            logits = logits if one else logits / logits.sum(1, keepdims=True)
        if self.served.step_tag is not None:
            logits = logits[np.array(ids) == self.served.step_tag]
        data: Any = logits.tolist()
        if body.get("encoding_format") == "base64":
            assert body["endianness"] == "little"
            data = base64.b64encode(logits.astype("<f4").tobytes()).decode()
        return {
            "id": "pooling-ad1b037749f53b0c",
            "object": "list",
            "created": 1795459284,
            "model": self.served.name,
            "data": [{"index": 0, "object": "pooling", "data": data}],
            "usage": _usage(len(ids), 0),
        }

    def _completions(self, body: dict[str, Any]) -> Any:
        ids = self._checked(body, "prompt", room=body["max_tokens"])
        likely = self.served.network.likely(ids)
        if likely is None:
            self._missing(body)
        if body.get("logprob_token_ids") and not body.get("logprobs"):
            raise _error(400, "when using `logprob_token_ids`, `logprobs` must be set.", param="logprob_token_ids")
        best = int(likely.argmax())
        chosen = [] if self.served.ignores_chosen else body.get("logprob_token_ids", [])
        top = {f"token_id:{token}": float(likely[token]) for token in (best, *chosen)}
        logprobs = {
            "text_offset": [0],
            "token_logprobs": [float(likely[best])],
            "tokens": [f"token_id:{best}"],
            "top_logprobs": [top],
        }
        return {
            "id": "cmpl-bcf899a1c9d60964",
            "object": "text_completion",
            "created": 1795459320,
            "model": self.served.name,
            "choices": [{"index": 0, "text": "", "logprobs": logprobs, "finish_reason": "length"}],
            "usage": _usage(len(ids), 1),
        }

    def _checked(self, body: dict[str, Any], key: str, room: int = 0) -> list[int]:
        """The token ids of a request."""
        served, ids = self.served, body[key]
        if body["model"] != served.name:
            raise _error(404, f"The model `{body['model']}` does not exist.", "NotFoundError")
        if len(ids) + room > served.context:
            raise _error(
                400,
                f"This model's maximum context length is {served.context} tokens. However, your prompt contains "
                f"{len(ids)} input tokens, which exceeds this limit even without any output tokens. Please reduce "
                f"the length of the input prompt. (parameter=input_tokens, value={len(ids)})",
                param="input_tokens",
            )
        outside = [token for token in ids if not 0 <= token < self.own_tokenizer.get_vocab_size() + 100]
        if outside:
            raise _error(400, f"Token id {outside[0]} is out of vocabulary")
        return ids


def _usage(prompt, written):
    return {"prompt_tokens": prompt, "total_tokens": prompt + written, "completion_tokens": written}


def token_id(folder, token):
    """The id of a token of a folder's tokenizer."""
    found = Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id(token)
    assert found is not None
    return int(found)
