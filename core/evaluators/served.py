"""Evaluators behind a vLLM server. The server needs only token ids; prompts and checkpoint formats are handled
here.

    vllm:http://HOST:8000/v1#MODEL
    vllm:http://HOST:8000/v1#MODEL,tokenizer=FOLDER,requests=64

The model is described by its config, tokenizer and stepsight.json. They are read from the folder given as
`tokenizer` in the address. Without that option, they are read from the folder or hub repository called MODEL or,
failing that, from the path that the server says it loaded. Token ids are sent, never text.

A server that classifies tokens gets one request per input, just as a local model would. A language model that
answers with one of two tokens gets one request per step, and the server caches the shared prefixes. When an
evaluator is opened, short requests find out whether the server classifies tokens or generates them, whether its
numbers are logits, and whether its attention sees later tokens.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stepsight.core.arrays import Floats32, Ints
from stepsight.core.errors import UserError, counted
from stepsight.core.formats.answers import VOCABULARY, AnswerFormat, softmax_of
from stepsight.core.formats.format import CheckpointFormat
from stepsight.core.formats.recognition import FORMATS, format_of, read_card_of, recognise
from stepsight.core.hubs.checkpoint_files import TOKENIZER, is_hub_id, read_config_file
from stepsight.core.hubs.public import with_known
from stepsight.core.inference_servers.address import ServerAddress
from stepsight.core.inference_servers.server import AT_ONCE, Server, ServerError, gather
from stepsight.core.inference_servers.vllm import (
    ServedModel,
    classify_tokens,
    find_model,
    next_tokens,
    server_tokens,
)
from stepsight.core.judgment import Event, Judgment, Mode
from stepsight.core.models.checkpoint import ATTENTIONS, Checkpoint, read_card, repository
from stepsight.core.models.checkpoint_resolver import model_folder
from stepsight.core.models.evaluator import check_numbers, named
from stepsight.core.models.evaluator_base import ServedEvaluator
from stepsight.core.models.model import SIGMOID, VALIDITY, ClassOrder, outputs_of
from stepsight.core.prompts.encoding import Encoded, Encoder
from stepsight.core.prompts.template import PromptTemplate, Read
from stepsight.core.scoring.forward import Input, assemble, mode_inputs
from stepsight.core.trace import Label, Trace

TOKENIZER_OPTION, REQUESTS_OPTION = "tokenizer", "requests"

_MOST_REQUESTS = 1024
_PROBE = Trace.of("What is 2 + 3?", ["2 + 3 = 5.", "So the answer is 5."])
_TEXT = "Step 1: 2 + 3 = 5, so the answer is \\boxed{5}."
# Rounding alone changes logits by at most this share of their range.
_ROUNDING = 0.05
_MANUAL = "See the manual, Evaluators behind a vLLM server."


@dataclass(frozen=True)
class _Classes:
    """A rule for reading the output of a server that classifies tokens into `columns` label classes.

    `order` gives the index of the class for each of neg, neu and pos, or None. `logits` is False if the server can
    return only probabilities.
    """

    columns: int
    order: ClassOrder
    logits: bool = True

    def probabilities(self, values: Floats32) -> Floats32:
        """Convert the server's numbers, an array of shape (n, columns), to probabilities of neg, neu and pos, of
        shape (n, 3)."""
        absent = -np.inf if self.logits else 0.0
        numbers = np.full((len(values), len(Label)), absent)
        for label, column in enumerate(self.order):
            if column is not None:
                numbers[:, label] = values[:, column]
        if self.order == SIGMOID:
            numbers[:, Label.NEG] = 0 if self.logits else 1 - numbers[:, Label.POS]
        return _softmax(numbers) if self.logits else numbers.astype(np.float32)


@dataclass(frozen=True)
class _Answers:
    """A rule for reading the output of a language model that answers with one of two tokens.

    `tokens` holds the tokens for wrong and right. If `whole` is True, the validity is the probability of the token
    for right in the whole vocabulary. Otherwise it is that token's share of the two tokens' probabilities.
    """

    tokens: tuple[int, int]
    whole: bool

    def probabilities(self, logprobs: list[float]) -> Floats32:
        """Convert the log-probabilities of the tokens for wrong and right to probabilities of neg, neu and pos, of
        shape (1, 3)."""
        wrong, right = logprobs
        if self.whole:
            valid = float(np.exp(right))
            return np.array([[1 - valid, 0, valid]], np.float32)
        return _softmax(np.array([[wrong, -np.inf, right]]))


@dataclass(frozen=True, eq=False, kw_only=True)
class VllmEvaluator(ServedEvaluator):
    """An evaluator whose model runs on a vLLM server. The token ids of traces are sent to the server.

    `identity` is a fingerprint of the model's name, format, template and tokenizer, because the weights are not
    accessible.
    """

    server: Server
    model: ServedModel
    encoder: Encoder
    response: _Classes | _Answers
    causal: bool
    longest: int | None
    identity: str

    @property
    def fingerprint(self) -> str:
        return self.identity

    @property
    def attention(self) -> str:
        return ATTENTIONS[self.causal]

    @property
    def context(self) -> int | None:
        return self.longest

    @property
    def described(self) -> str:
        limit = "" if self.longest is None else f", inputs of up to {self.longest:,} tokens"
        access = "one request per step" if isinstance(self.response, _Answers) else "classes read at each token"
        return (
            f"{self.name}: {self.format} format, served at {self.server.url}, {self.attention}, {access}{limit}. "
            "Its weights are not accessible, so judgments are stored under its name."
        )

    def encode(self, trace: Trace) -> Encoded:
        """Return the token ids of the whole trace. Raises `UserError` if the trace is too long for the server."""
        encoded = self.encoder.encode(trace)
        if self.longest is not None and len(encoded) > self.longest:
            raise UserError(
                f"{named(trace)} has {len(encoded):,} tokens, but {self.name} at {self.server.url} reads at most "
                f"{self.longest:,}.",
                "Shorten it, or raise vLLM's --max-model-len (or use --skip-too-long).",
            )
        return encoded

    def tokens(self, trace: Trace, encoded: Encoded, mode: Mode) -> int:
        return sum(item.length for item in self._inputs(trace, encoded, mode))

    def judge_all(self, encoded: Iterable[tuple[Trace, Encoded]], mode: Mode) -> Iterator[Event]:
        async def ask(item: tuple[Trace, Encoded]) -> list[Floats32]:
            return await gather(self._rows(part) for part in self._inputs(*item, mode))

        for answered in self.server.stream(encoded, ask):
            if answered is None:
                yield None
                continue
            (trace, _), rows = answered
            check_numbers(self.name, rows, trace)
            parts = (np.concatenate(rows),) if self.causal else tuple(rows)
            yield Judgment(trace, mode, assemble(parts, mode, causal=self.causal))

    def _inputs(self, trace: Trace, encoded: Encoded, mode: Mode) -> list[Input]:
        """Return the inputs of `mode_inputs` if the server classifies tokens. A language model answers at the end
        of its input, so it needs one input per sub-step."""
        if isinstance(self.response, _Answers):
            return [Input(encoded.ids, int(read) + 1, np.array([read])) for read in encoded.reads]
        return mode_inputs(trace, encoded, mode, causal=self.causal)

    async def _rows(self, item: Input) -> Floats32:
        """Return the probabilities at the read positions of an input, with shape (reads, 3). Raises `ServerError`
        if the request fails."""
        ids = item.ids[: item.length]
        if isinstance(self.response, _Answers):
            logprobs = await next_tokens(self.server, self.model.name, ids.tolist(), self.response.tokens)
            return self.response.probabilities(logprobs)
        rows = await classify_tokens(self.server, self.model.name, ids.tolist(), self.response.columns)
        return self.response.probabilities(_rows_at(rows, ids, item.reads, self.encoder, self.server.url))


def open_served(address: ServerAddress) -> VllmEvaluator:
    """Open the evaluator at an address, after querying the server for its models and scoring a short test trace.

    Raises `UserError` if the server does not respond, lacks the model, or does not serve the model in a way that
    its format can use, or if the tokenizer is missing or differs from the server's.
    """
    address.check_options({TOKENIZER_OPTION, REQUESTS_OPTION})
    server = Server(address.url, at_once=_requests(address))
    try:
        return _open(server, address)
    except BaseException:
        server.close()
        raise


def _open(server: Server, address: ServerAddress) -> VllmEvaluator:
    model = server.run(find_model(server, address.model))
    checkpoint = _local_checkpoint(address, model)
    kind = recognise(checkpoint)
    encoder, thresholds, provenance = read_card_of(checkpoint, kind)
    _check_tokenizer(server, address, checkpoint, model)
    response, causal = _probe(server, model, checkpoint, kind, encoder)
    name = address.model.rstrip("/").rpartition("/")[2]
    return VllmEvaluator(
        name=f"{name} (vllm)",
        format=format_of(checkpoint, kind),
        thresholds=thresholds,
        provenance=provenance,
        outputs=outputs_of(response.order if isinstance(response, _Classes) else VALIDITY),
        server=server,
        model=model,
        encoder=encoder,
        response=response,
        causal=causal,
        longest=_longest(checkpoint, model, response),
        identity=_identity(address.model, kind, encoder.template, checkpoint, response, causal=causal),
    )


def _requests(address: ServerAddress) -> int:
    text = address.options.get(REQUESTS_OPTION, str(AT_ONCE))
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= _MOST_REQUESTS):
        raise UserError(
            f"{address}: {REQUESTS_OPTION} is {text!r:.40}, expected a number from 1 to {_MOST_REQUESTS:,}."
        )
    return int(text)


def _local_checkpoint(address: ServerAddress, model: ServedModel) -> Checkpoint:
    """Return the checkpoint, without weights, whose config, tokenizer and stepsight.json describe the served model.
    Raises `UserError` if none is found."""
    option = address.options.get(TOKENIZER_OPTION)
    reason = f"{option or address.model!r} is neither a folder nor a model hub's OWNER/NAME."
    for spec in [option] if option else [address.model, model.root]:
        try:
            if os.path.isdir(spec):
                folder = Path(spec)
            elif is_hub_id(spec):
                folder = model_folder(spec, weights=False)
            else:
                continue
        except UserError as error:
            reason = error.message
            continue
        return Checkpoint(folder, read_config_file(folder), with_known(repository(folder), read_card(folder)))
    raise UserError(
        f"{address}: {reason}",
        f"Name the folder of its config.json and {TOKENIZER}: {address.kind}:{address.url}#{address.model},"
        f"{TOKENIZER_OPTION}=FOLDER.",
    )


def _check_tokenizer(server: Server, address: ServerAddress, checkpoint: Checkpoint, model: ServedModel) -> None:
    """Raise `UserError` if the server assigns other tokens to token ids than the local tokenizer. How the server
    tokenizes text does not matter, because no text is sent."""
    pairs = server.run(server_tokens(server, model.name, _TEXT)) or []
    if any(checkpoint.vocabulary.token(number) != name for number, name in pairs):
        raise UserError(
            f"{address}: the server's tokenizer differs from the one in {checkpoint.folder}.",
            f"Name the folder of the model that it serves: …#{address.model},{TOKENIZER_OPTION}=FOLDER.",
        )


def _longest(checkpoint: Checkpoint, model: ServedModel, response: _Classes | _Answers) -> int | None:
    """Return the maximum input length in tokens, or None if it is unknown. For a language model, one token is
    reserved for its answer."""
    limits = [] if model.context is None else [model.context - isinstance(response, _Answers)]
    own = checkpoint.config.get("max_position_embeddings")
    limits += [own] if isinstance(own, int) and not isinstance(own, bool) else []
    return min(limits, default=None)


def _identity(
    name: str,
    kind: CheckpointFormat,
    template: PromptTemplate,
    checkpoint: Checkpoint,
    response: _Classes | _Answers,
    *,
    causal: bool,
) -> str:
    """Return the hash that identifies the evaluator. It is the same whether a language model is served as such or
    as a classifier."""
    order = response.order if isinstance(response, _Classes) and not isinstance(kind, AnswerFormat) else VALIDITY
    whole = isinstance(response, _Answers) and response.whole
    tokenizer = hashlib.sha256(checkpoint.tokenizer.read[0].read_bytes()).hexdigest()
    parts = ["vllm", name, kind.name, template.to_dict(), tokenizer, order, whole, ATTENTIONS[causal]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _probe(
    server: Server, model: ServedModel, checkpoint: Checkpoint, kind: CheckpointFormat, encoder: Encoder
) -> tuple[_Classes | _Answers, bool]:
    """Send the server a short input and return how to read its output, and whether the model is causal. Raises
    `UserError` if the server cannot be used with the checkpoint's format."""
    if not kind.is_served:
        supported = ", ".join(other.name for other in FORMATS if other.is_served)
        raise UserError(
            f"{checkpoint.folder}: vLLM servers are supported for {supported}, but not for {kind.name}.",
            "Load it on this machine instead.",
        )
    encoded = encoder.encode(_PROBE)
    ids = encoded.ids.tolist()

    async def classes(*, activated: bool = False) -> Floats32 | None:
        try:
            return await classify_tokens(server, model.name, ids, activated=activated)
        except ServerError as error:
            if error.status == 404:
                return None
            raise

    values = server.run(classes())
    if values is None and isinstance(kind, AnswerFormat):
        wrong, right = kind.answers(checkpoint)
        response = _Answers((wrong, right), softmax_of(checkpoint) == VOCABULARY)
        server.run(next_tokens(server, model.name, ids, response.tokens))
        return response, True
    if values is None:
        raise ServerError(
            f"{server.url}: the server generates text with {model.name} instead of classifying tokens.",
            f"Serve it with --runner pooling. {_MANUAL}",
        )
    columns, order = _columns(server, checkpoint, kind, values)
    _rows_at(values, encoded.ids, encoded.reads, encoder, server.url)
    activated = server.run(classes(activated=True))
    logits = activated is None or not np.array_equal(values, activated) or not _are_probabilities(values)
    return _Classes(columns, order, logits), _is_causal(server, model, checkpoint, encoded, values)


def _columns(
    server: Server, checkpoint: Checkpoint, kind: CheckpointFormat, values: Floats32
) -> tuple[int, ClassOrder]:
    """Return the number of classes that the format expects, and the index of the class for each of neg, neu and
    pos. Raises `ServerError` if the server's model has a different number of classes."""
    columns = values.shape[1]
    if isinstance(kind, AnswerFormat):
        if softmax_of(checkpoint) == VOCABULARY:
            raise ServerError(
                f"{server.url}: two classes do not give a token's probability in the whole vocabulary.",
                "Serve it as a language model, without --runner pooling.",
            )
        expected, order = (1, SIGMOID) if columns == 1 else (2, VALIDITY)
    else:
        expected, order = kind.classes(checkpoint)
    if len(values) and columns != expected:
        raise ServerError(
            f"{server.url}: the server returns {counted(columns, 'number')} per token, but the {kind.name} format "
            f"has {expected}.",
            f"Check how it is served. {_MANUAL}",
        )
    return expected, order


def _rows_at(rows: Floats32, ids: Ints, reads: Ints, encoder: Encoder, url: str) -> Floats32:
    """Return the server's rows at the positions `reads` of an input.

    The server may return one row per token, or one row per token that ends a step. Raises `ServerError` if it
    returns any other number of rows.
    """
    if len(rows) == len(ids):
        return rows[reads]
    ends = np.zeros(0, np.int64)
    if encoder.template.read == Read.SEPARATOR:
        ends = np.flatnonzero(ids == encoder.separator)
    if len(rows) != len(ends) or not np.isin(reads, ends).all():
        raise ServerError(
            f"{url}: the server returned {len(rows):,} rows for {len(ids):,} tokens with {len(ends):,} step ends.",
            'Serve it with --pooler-config \'{"tok_pooling_type": "ALL"}\'.',
        )
    return rows[np.searchsorted(ends, reads)]


def _is_causal(
    server: Server, model: ServedModel, checkpoint: Checkpoint, encoded: Encoded, whole: Floats32
) -> bool:
    """True if later tokens do not change the server's numbers for earlier tokens.

    Also True if the server does not return a row per token, because all formats served that way are causal. Raises
    `ServerError` if stepsight.json contradicts the result.
    """
    if len(whole) != len(encoded.ids):
        return True
    start = encoded.ids[: int(encoded.ends[0]) + 1].tolist()
    part = server.run(classify_tokens(server, model.name, start))
    if len(part) != len(start) or part.shape[1] != whole.shape[1]:
        raise ServerError(
            f"{server.url}: the server returned {len(part):,} rows for {len(start):,} tokens.", _MANUAL
        )
    changed = float(np.abs(part - whole[: len(part)]).max())
    causal = changed <= _ROUNDING * float(np.ptp(whole))
    named: Any = checkpoint.card.get("attention")
    if named in ATTENTIONS and named != ATTENTIONS[causal]:
        raise ServerError(
            f"{server.url}: {model.name} is {named} according to stepsight.json, but on this server later tokens "
            f"{'do not change' if causal else 'change'} the scores of earlier ones.",
            "Load it on this machine instead.",
        )
    return causal


def _are_probabilities(values: Floats32) -> bool:
    """True if the numbers look like probabilities: they are between 0 and 1 and, if there are several per token,
    add up to 1."""
    in_range = bool(((values >= 0) & (values <= 1)).all())
    return in_range and (values.shape[1] == 1 or bool(np.allclose(values.sum(1), 1, atol=1e-3)))


def _softmax(logits: np.ndarray[Any, np.dtype[np.float64]]) -> Floats32:
    """Return the softmax along the last axis, computed in double precision and then rounded to single precision."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(np.float32)
