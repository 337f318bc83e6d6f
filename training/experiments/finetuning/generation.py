"""Generating greedy answers with a causal language model, using vLLM if it is installed and Transformers otherwise.

Answers are generated in batches of problems of similar length. Each batch is written to FOLDER/answers.jsonl at
once:

    {"problem": 1, "text": "196 = 2^2 * 7^2, so 9.", "tokens": 21, "ended": true}
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import torch
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from stepsight.core.errors import UserError
from stepsight.core.files.atomic import atomic_file
from stepsight.core.models.backbone import main_device
from stepsight.core.models.placement import Placement
from stepsight.training.experiments.finetuning.models import context_of, load_model
from stepsight.training.runs.row_file import RowFile

ANSWERS = "answers.jsonl"


@dataclass(frozen=True)
class GeneratedAnswer:
    """An answer that a model generated. `tokens` is the number of tokens in the answer, not counting the end token.
    `ended` is True if the model reached the end token."""

    text: str
    tokens: int
    ended: bool


Answers = dict[int, GeneratedAnswer]
"""Answers by the index of the problem, from 0."""


class Engine(Protocol):
    """A model that can continue prompts. `context` is the maximum number of tokens of a prompt and its answer
    together."""

    name: str
    context: int

    def write(self, prompts: Sequence[Sequence[int]], longest: int) -> list[GeneratedAnswer]:
        """Generate a greedy answer of at most `longest` tokens to each prompt, which is given as token ids."""


def open_engine(name: str, folder: Path, tokenizer: PreTrainedTokenizerBase, place: Placement) -> Engine:
    """Load the model in a folder for generation. The engine `auto` stands for vLLM if vLLM and a GPU are available,
    and for Transformers otherwise. Raises `UserError` if vLLM is requested but not installed."""
    if engine_name(name) == "vllm":
        return VllmEngine(folder, place)
    return TransformersEngine(load_model(folder, place), tokenizer)


def engine_name(name: str) -> str:
    """Return the engine, `vllm` or `transformers`, that `name` stands for on this machine. Raises `UserError` if
    vLLM is requested but not installed."""
    installed = find_spec("vllm") is not None
    if name == "vllm" and not installed:
        raise UserError("vLLM is not installed.", "Install it, or take --engine transformers.")
    if name == "auto":
        return "vllm" if installed and torch.cuda.is_available() else "transformers"
    return name


class TransformersEngine:
    name = "transformers"

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.context = context_of(model)
        model.train(False)
        self._model: Any = model
        self._tokenizer: Any = tokenizer

    @torch.inference_mode()
    def write(self, prompts: Sequence[Sequence[int]], longest: int) -> list[GeneratedAnswer]:
        device, width = main_device(self._model), max(map(len, prompts))
        pad, end = int(self._tokenizer.pad_token_id), int(self._tokenizer.eos_token_id)
        ids = torch.full((len(prompts), width), pad, device=device)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, width - len(prompt) :] = torch.tensor(prompt, device=device)
            mask[row, width - len(prompt) :] = 1
        # Ignore the checkpoint's own settings for sampling, penalties and forced tokens.
        config = GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=False, num_beams=1, max_new_tokens=longest, eos_token_id=end, pad_token_id=pad, use_cache=True
        )
        self._model.generation_config = config
        whole: Any = self._model.generate(input_ids=ids, attention_mask=mask, generation_config=config)
        return [self._answer(row, end) for row in whole[:, width:].tolist()]

    def _answer(self, ids: list[int], end: int) -> GeneratedAnswer:
        ended = end in ids
        kept = ids[: ids.index(end)] if ended else ids
        return GeneratedAnswer(self._tokenizer.decode(kept, skip_special_tokens=True), len(kept), ended)


class VllmEngine:
    """A model run by vLLM on all visible GPUs."""

    name = "vllm"

    def __init__(self, folder: Path, place: Placement) -> None:
        from vllm import LLM, SamplingParams

        self._greedy = partial(SamplingParams, temperature=0.0)
        self._model = LLM(
            model=str(folder),
            dtype=place.dtype,
            tensor_parallel_size=max(1, torch.cuda.device_count()),
            # Ignore the checkpoint's own settings for sampling.
            generation_config="vllm",
            trust_remote_code=False,
        )
        self.context = int(self._model.llm_engine.model_config.max_model_len)

    def write(self, prompts: Sequence[Sequence[int]], longest: int) -> list[GeneratedAnswer]:
        params = self._greedy(max_tokens=longest)
        inputs = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        outputs = [output.outputs[0] for output in self._model.generate(inputs, params, use_tqdm=False)]
        return [self._answer(output) for output in outputs]

    def _answer(self, output: Any) -> GeneratedAnswer:
        ended = output.finish_reason == "stop"
        # The end token is among the tokens, but not in the text.
        return GeneratedAnswer(output.text, len(output.token_ids) - ended, ended)


def batches_of(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Divide prompts with the given lengths into batches of `size`, and return the prompts' indices in each batch.
    The longest prompts come first, so that a lack of memory shows at once."""
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    return [order[start : start + size] for start in range(0, len(order), size)]


def answer_all(
    prompts: Sequence[Sequence[int]],
    open_model: Callable[[], Engine],
    folder: Path,
    longest: int,
    size: int,
    announce: Callable[[int, int], None],
) -> list[GeneratedAnswer]:
    """Return an answer to each prompt, generating the answers that are missing in `folder`.

    Existing answers are kept only in complete batches, so that a resumed run has the same batches as an
    uninterrupted one. The model is opened only if an answer is missing. Answers have at most `longest` tokens, or
    fewer if the model's context requires it. `announce` is called with the number of prompts answered so far and
    the total number of prompts. Raises `UserError` if a prompt exceeds the context, or if the file cannot be
    written.
    """
    batches = batches_of([len(prompt) for prompt in prompts], size)
    with RowFile(folder / ANSWERS) as file:
        answers = _read(file, len(prompts))
        if len(answers) == len(prompts):
            return _in_order(answers)
        done = _whole_batches(answers, batches)
        answers = {index: answers[index] for batch in batches[:done] for index in batch}
        file.keep(len(answers))
        engine = open_model()
        _check(prompts, engine)
        for batch in batches[done:]:
            room = engine.context - max(len(prompts[index]) for index in batch)
            batch_answers = engine.write([prompts[index] for index in batch], min(longest, room))
            answers |= dict(zip(batch, batch_answers, strict=True))
            file.add(_row(index, answers[index]) for index in batch)
            announce(len(answers), len(prompts))
    with atomic_file(folder / ANSWERS) as partial, RowFile(partial) as file:
        file.add(_row(index, answer) for index, answer in enumerate(_in_order(answers)))
    return _in_order(answers)


def _check(prompts: Sequence[Sequence[int]], engine: Engine) -> None:
    for index, prompt in enumerate(prompts):
        if len(prompt) >= engine.context:
            raise UserError(
                f"problem {index + 1} has {len(prompt):,} tokens with its prompt; the model takes "
                f"{engine.context:,}, the answer included.",
                "Leave it out, or take another model.",
            )


def _read(file: RowFile, count: int) -> Answers:
    """Return the answers in a file, keyed by problem and in file order, up to the first invalid row."""
    answers: Answers = {}
    for row in file:
        try:
            index, answer = row.pop("problem") - 1, GeneratedAnswer(**row)
        except (KeyError, TypeError):
            break
        if index not in range(count):
            break
        answers[index] = answer
    return answers


def _whole_batches(answers: Answers, batches: Sequence[Sequence[int]]) -> int:
    """Return the number of complete batches at the start of the file."""
    order, start = list(answers), 0
    for number, batch in enumerate(batches):
        if order[start : start + len(batch)] != [*batch]:
            return number
        start += len(batch)
    return len(batches)


def _in_order(answers: Answers) -> list[GeneratedAnswer]:
    return [answers[index] for index in sorted(answers)]


def _row(index: int, answer: GeneratedAnswer) -> dict[str, Any]:
    return {"problem": index + 1} | asdict(answer)
