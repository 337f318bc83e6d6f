import json
import shutil

import torch
from safetensors.torch import load_file, save_file

from stepsight.core.models.placement import Placement
from stepsight.training.experiments.finetuning.language_model import (
    load_model,
    load_text_tokenizer,
    model_folder,
    prompt_ids,
    write_scratch_model,
)
from tests.checkpoints import write_evaluator
from tests.messages import refused
from tests.training.experiments.finetuning.small import BACKBONE, ROWS


def test_a_model_from_scratch_is_a_whole_folder_and_follows_from_its_seed(start, tmp_path):
    texts = [text for row in ROWS for text in row]
    write_scratch_model(tmp_path / "again", texts, BACKBONE, 320, seed=1)
    write_scratch_model(tmp_path / "other", texts, BACKBONE, 320, seed=2)
    weights = [
        (folder / "model.safetensors").read_bytes() for folder in (start, tmp_path / "again", tmp_path / "other")
    ]
    assert weights[0] == weights[1] != weights[2]
    tokenizer, model = load_text_tokenizer(start), load_model(start, Placement(dtype="float32"))
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<end>", "<pad>")
    # The tokens that are trained, and one that ends a text.
    assert model.config.vocab_size == len(tokenizer) <= 321
    assert model.dtype == torch.float32
    assert tokenizer.decode(prompt_ids(tokenizer, "2 + 3 = 5.")) == "2 + 3 = 5."


def test_an_evaluator_or_an_encoder_is_no_language_model(start, tmp_path):
    write_evaluator(tmp_path / "evaluator", max_position_embeddings=2048)
    encoder = shutil.copytree(start, tmp_path / "encoder")
    config = json.loads((start / "config.json").read_text())
    (encoder / "config.json").write_text(json.dumps(config | {"architectures": ["BertForMaskedLM"]}))
    for spec in (tmp_path / "evaluator", encoder, "nothing here", tmp_path):
        with refused():
            model_folder(str(spec))


def test_a_missing_head_or_end_token_is_named(start, tmp_path):
    folder = shutil.copytree(start, tmp_path / "headless")
    weights = load_file(folder / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with refused():
        load_model(folder, Placement(dtype="float32"))
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token": None}))
    with refused():
        load_text_tokenizer(folder)
