"""Greedy answers of a causal language model, by vLLM where it is installed or by Transformers."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import torch
from transformers import GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from stepsight.core.errors import UserError
from stepsight.core.models.backbone import main_device
from stepsight.core.models.placement import Placement
from stepsight.training.experiments.finetuning.models import context_of, load_model

ENGINES = ("auto", "vllm", "transformers")


@dataclass(frozen=True)
class GeneratedAnswer:
    """What a model wrote: `tokens` without the one that ends a text, and whether it came to that end."""

    text: str
    tokens: int
    ended: bool


class Engine(Protocol):
    """A model that goes on from prompts; `context` is its longest input, the answer included, in tokens."""

    name: str
    context: int

    def write(self, prompts: Sequence[Sequence[int]], longest: int) -> list[GeneratedAnswer]:
        """An answer of at most `longest` tokens to each prompt, of token ids; at every token the likeliest."""


def open_engine(name: str, folder: Path, tokenizer: PreTrainedTokenizerBase, place: Placement) -> Engine:
    """The model in a folder, ready to write; `auto` is vLLM where it and a GPU are there. Raises `UserError` where
    vLLM is asked for and not installed."""
    if chosen(name) == "vllm":
        return VllmEngine(folder, place)
    return TransformersEngine(load_model(folder, place), tokenizer)


def chosen(name: str) -> str:
    """The engine that a name means here."""
    installed = find_spec("vllm") is not None
    if name == "vllm" and not installed:
        raise UserError("vLLM is not installed.", "Install it, or take --engine transformers.")
    if name == "auto":
        return "vllm" if installed and torch.cuda.is_available() else "transformers"
    return name


class TransformersEngine:
    """A model of Transformers."""

    name = "transformers"

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.context = context_of(model)
        model.train(False)
        self._model: Any = model
        self._tokenizer: Any = tokenizer

    @torch.inference_mode()
    def write(self, prompts: Sequence[Sequence[int]], longest: int) -> list[GeneratedAnswer]:
        """See `Engine`."""
        device, width = main_device(self._model), max(map(len, prompts))
        pad, end = int(self._tokenizer.pad_token_id), int(self._tokenizer.eos_token_id)
        ids = torch.full((len(prompts), width), pad, device=device)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, width - len(prompt) :] = torch.tensor(prompt, device=device)
            mask[row, width - len(prompt) :] = 1
        # Nothing of what a checkpoint says of sampling, penalties or forced tokens is to be heeded.
        config = GenerationConfig(  # type: ignore[no-untyped-call]
            do_sample=False, num_beams=1, max_new_tokens=longest, eos_token_id=end, pad_token_id=pad, use_cache=True
        )
        self._model.generation_config = config
        found: Any = self._model.generate(input_ids=ids, attention_mask=mask, generation_config=config)
        return [self._written(row, end) for row in found[:, width:].tolist()]

    def _written(self, ids: list[int], end: int) -> GeneratedAnswer:
        ended = end in ids
        kept = ids[: ids.index(end)] if ended else ids
        return GeneratedAnswer(self._tokenizer.decode(kept, skip_special_tokens=True), len(kept), ended)


class VllmEngine:
    """A model of vLLM, over all GPUs that it is allowed to see."""

    name = "vllm"

    def __init__(self, folder: Path, place: Placement) -> None:
        from vllm import LLM

        self._model = LLM(
            model=str(folder),
            dtype=place.dtype,
            tensor_parallel_size=max(1, torch.cuda.device_count()),
            # What a checkpoint says of sampling is not to be heeded.
            generation_config="vllm",
            trust_remote_code=False,
        )
        self.context = int(self._model.llm_engine.model_config.max_model_len)

    def write(self, prompts: Sequence[Sequence[int]], longest: int) -> list[GeneratedAnswer]:
        """See `Engine`."""
        from vllm import SamplingParams

        params = SamplingParams(temperature=0.0, max_tokens=longest)
        inputs = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        outputs = [output.outputs[0] for output in self._model.generate(inputs, params, use_tqdm=False)]
        return [self._written(output) for output in outputs]

    def _written(self, output: Any) -> GeneratedAnswer:
        ended = output.finish_reason == "stop"
        # The token that ends a text is among its tokens, and not in its text.
        return GeneratedAnswer(output.text, len(output.token_ids) - ended, ended)
