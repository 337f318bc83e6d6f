"""Loading evaluators: recognising the format of a checkpoint and reading its weights, and merging an adapter with
its base model into one evaluator that needs neither of them.
"""

import os
import shutil
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from stepsight.core.critics.critic import open_critic
from stepsight.core.equations.evaluator import EquationsEvaluator
from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import OWN_READING, EvaluatorSummary, Reading, split_reading
from stepsight.core.evaluators.both_orders import read_as
from stepsight.core.evaluators.served import open_served
from stepsight.core.formats.format import CheckpointFormat
from stepsight.core.formats.heads import StepSight
from stepsight.core.formats.recognition import format_of, read_card_of, recognise
from stepsight.core.hubs.checkpoint_files import NAME_BASE
from stepsight.core.hubs.hub_cache import FetchedWeights, HubModel, check_files, save_fetched
from stepsight.core.inference_servers.address import CRITIC, is_address, parse_address
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.checkpoint_resolver import (
    BASE_HASH,
    evaluator_folder,
    open_checkpoint,
    resolve_placement,
    stored_dtype,
)
from stepsight.core.models.devices import check_placement, dtype_name, torch_dtype
from stepsight.core.models.evaluator import ModelEvaluator, fingerprint, save_evaluator
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.models.location import EQUATIONS
from stepsight.core.models.memory import check_memory, count_weights, memory_of
from stepsight.core.models.model import StepModel, context_of, outputs_of
from stepsight.core.models.placement import STORED, Placement, typed_name
from stepsight.core.prompts.encoding import Encoder
from stepsight.core.scores import Thresholds
from stepsight.core.scoring.scorer import Scorer

# Weights with fewer bytes are read in less than a second.
_SMALL = 100_000_000


def load_evaluator(
    spec: str | Path,
    device: str = "cpu",
    dtype: torch.dtype | str | None = None,
    device_map: str | dict[str, Any] | None = None,
) -> Evaluator:
    """Load an evaluator, given by the name of a shipped one, a folder in any supported format, or the id of a model
    on a hub.

    `equations` needs no folder. A server address (see `core.inference_servers.address`) loads an evaluator behind
    that server; the server then determines `device`, `dtype` and `device_map`. A name that ends with
    `, read in both orders` loads the evaluator with that reading (see `core.evaluator_summary`).

    `dtype` is the type of the weights in memory. If it is None, the stored type is kept if the device supports it
    well; otherwise the weights are converted to float32 (see `core.models.placement`). A type other than float32
    becomes part of the name and of the fingerprint, because the scores differ. `device_map` has the same meaning as
    in Accelerate, such as "auto" for several GPUs, and overrides `device` (see `Placement`). `Evaluator.format` is
    the recognised format. Raises `UserError` if there is no such evaluator or device, if the format is unknown, or
    if a file, tensor or token is missing, damaged or misshapen.
    """
    name, reading = split_reading(str(spec))
    if reading != OWN_READING:
        if is_address(name):
            # Checked before any request is sent.
            raise reading.refused(name, "is behind a server")
        return read_as(Scorer(load_evaluator(name, device, dtype, device_map)), reading).evaluator
    if str(spec) == EQUATIONS:
        return EquationsEvaluator()
    if is_address(spec):
        address = parse_address(str(spec))
        return open_critic(address) if address.kind == CRITIC else open_served(address)
    name = dtype_name(dtype) if isinstance(dtype, torch.dtype) else dtype or STORED
    place = check_placement(Placement(device, name, device_map))
    folder = evaluator_folder(spec, place)
    checkpoint = open_checkpoint(folder)
    kind = recognise(checkpoint)
    place = check_placement(resolve_placement(place, checkpoint))
    encoder, thresholds, provenance = read_card_of(checkpoint, kind)
    loaded = kind.load(checkpoint, place)
    if context_of(loaded.backbone) is None:
        raise UserError(f"{checkpoint.folder}/config.json: max_position_embeddings is missing.", "Copy it again.")
    return ModelEvaluator(
        name=typed_name(checkpoint.name, place.dtype),
        model=StepModel(loaded.backbone, loaded.head).eval(),
        encoder=encoder,
        identify=_identity(checkpoint, kind, encoder, place),
        format=format_of(checkpoint, kind),
        thresholds=thresholds,
        provenance=provenance,
        outputs=outputs_of(loaded.order),
    )


def identify_folder(spec: str | Path, place: Placement) -> tuple[str, Thresholds] | None:
    """Return the fingerprint and the thresholds of an evaluator at `place` as they would be if it were loaded.

    Its files are read, and no network is built. Returns None for an evaluator without a folder and for one with a
    reading. Raises `UserError` in the cases of `load_evaluator` that concern these files.
    """
    if str(spec) == EQUATIONS or is_address(spec) or split_reading(str(spec))[1] != OWN_READING:
        return None
    checkpoint = open_checkpoint(evaluator_folder(spec, place))
    kind, place = recognise(checkpoint), check_placement(resolve_placement(check_placement(place), checkpoint))
    encoder, thresholds, _ = read_card_of(checkpoint, kind)
    return _identity(checkpoint, kind, encoder, place)(), thresholds


def _identity(
    checkpoint: Checkpoint, kind: CheckpointFormat, encoder: Encoder, place: Placement
) -> Callable[[], str]:
    """Return the function that computes an evaluator's fingerprint.

    A small evaluator is hashed immediately, a large one on first request. The function raises `UserError` if the
    files have changed since the evaluator was loaded, or if an adapter's base is not the one it was trained on.
    """
    attention, template = str(checkpoint.card.get("attention")), encoder.template.to_dict()
    extra = (*kind.identity(checkpoint), *([] if place.dtype == "float32" else [place.dtype]))
    folder, before = checkpoint.folder, checkpoint.state

    @cache
    def identify() -> str:
        digest = fingerprint(checkpoint, template, attention, *extra)
        if checkpoint.state != before:
            raise UserError(f"{folder} has changed since it was loaded.", "Load it again.")
        base = checkpoint.weights.base
        if base is not None and checkpoint.card.get(BASE_HASH, base.sha256) != base.sha256:
            raise UserError(
                f"{folder}: {base.all_paths[0].parent} is not the base it was trained on: the weights differ.",
                NAME_BASE,
            )
        return digest

    if sum(size for _, size, _ in before) <= _SMALL:
        identify()
    return identify


def load_fetched(fetched: HubModel, place: Placement, reading: Reading = OWN_READING) -> Evaluator:
    """Load a downloaded evaluator, with a reading if one is given.

    If it differs from its record, because another version of StepSight reads it differently, the record is updated.
    Raises `UserError` if it cannot be loaded, if this machine has too little memory, or if a file has changed since
    it was downloaded.
    """
    # Only files that the child has read are read here. Weights are mapped before they are compared, since hashing a
    # large file first would take as long again. They contain no code and no more numbers than their file has bytes,
    # and their fingerprint is compared below, before anything is computed with them.
    check_files(fetched, weights=False)
    place = resolve_placement(place, open_checkpoint(fetched.folder))
    if place.on_processor:
        check_memory(fetched.name, memory_of(fetched, place.dtype))
    start = time.perf_counter()
    try:
        evaluator = load_evaluator(fetched.folder, place.device, place.dtype, place.device_map)
    except (UserError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # panics in Rust libraries are not an Exception
        # The exception references frames that reference the weights.
        message = " ".join(str(error).split())
        raise UserError(
            f"{fetched.name} cannot be loaded: {message:.300}", "See the server's log, or choose another evaluator."
        ) from None
    summary = fetched.descriptions.get(place.dtype)
    if summary is None or summary.fingerprint != evaluator.fingerprint:
        check_files(fetched)
        save_fetched(fetched.described(place.dtype, evaluator.description(round(time.perf_counter() - start, 2))))
    return evaluator if reading == OWN_READING else read_as(Scorer(evaluator), reading).evaluator


def describe(fetched: HubModel, dtype: str) -> EvaluatorSummary:
    """Load a downloaded evaluator on the processor, with its weights in one data type, and return its summary.
    Raises `UserError` if it cannot be loaded."""
    start = time.perf_counter()
    evaluator = load_evaluator(fetched.folder, dtype=dtype)
    return evaluator.description(round(time.perf_counter() - start, 2))


def weigh(fetched: HubModel) -> FetchedWeights:
    """Return the description of a downloaded evaluator's weights. Raises `UserError` if a part is missing or
    damaged."""
    checkpoint = open_checkpoint(fetched.folder)
    stored, chosen = stored_dtype(checkpoint), checkpoint.card.get("dtype")
    dtype = resolve_placement(Placement(), checkpoint).dtype if chosen else stored
    return FetchedWeights(count=count_weights(fetched, stored), dtype=dtype, is_chosen=chosen is not None)


def write_merged(spec: str, output: Path, dtype: str = "float32") -> Path:
    """Merge an adapter with its base model, write the evaluator to the folder `output`, and return its path.

    `dtype` is the type of the written weights. In float32 the merged evaluator gives the same scores as the
    adapter. Raises `UserError` if `spec` is not an adapter trained with StepSight, or if `output` is not empty or
    cannot be written. In these cases no files are left behind.
    """
    folder = evaluator_folder(spec)
    checkpoint = open_checkpoint(folder)
    if checkpoint.weights.base is None:
        raise UserError(f"{spec} is not an adapter, so there is nothing to merge.", "Use it as it is.")
    if checkpoint.card.get("format") != StepSight.name:
        raise UserError(
            f"{spec} was not trained with StepSight, and only adapters trained with it can be merged.",
            "Use it as it is, or merge it with PEFT.",
        )
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(f"{output} exists and is not an empty folder.", "Choose another --output.")
    evaluator = load_evaluator(folder, dtype=dtype)
    assert isinstance(evaluator, ModelEvaluator)
    partial = output.with_name(f"{output.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        model, encoder = evaluator.model, evaluator.encoder
        save_evaluator(partial, model, encoder, evaluator.provenance, evaluator.thresholds, torch_dtype(dtype))
        os.replace(partial, output)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"{output}: cannot be written ({reason}).", "Free some disk space, or choose another --output."
        ) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return output
