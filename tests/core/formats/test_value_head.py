"""Value heads against their authors' inputs and arithmetic: a language model's last hidden state, a linear
layer."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import Outputs
from stepsight.core.trace import Trace
from tests.checkpoints import pickled, write_pqm, write_qwen_prm, write_shards, write_skywork
from tests.core.formats.by_hand import TRACES, check_modes, of_two
from tests.messages import refused

LINES = Trace.of("One\ntwo?\n", ["a\nb\n\nc", "\nd", "e\n", ["f\n\n", " g"]])


@torch.inference_mode()
def value_of(model, head, ids, places):
    """The sigmoid of the value at these places."""
    hidden = model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states[-1][0, places]
    value = hidden @ head["v_head.summary.weight"][0] + head["v_head.summary.bias"]
    return (1 / (1 + torch.exp(-value.double()))).float().numpy()


def published(folder, trace):
    """Skywork's input: the beginning as one text, then each line and its line break. And the place of each step's
    last line break."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids = tokenizer.encode(f"<|endoftext|>{trace.problem}\n").ids
    line_break = tokenizer.encode("\n").ids[-1]
    flags = []
    for line in "\n".join(trace.substeps).split("\n"):
        ids += (tokenizer.encode(line).ids if line else []) + [line_break]
        flags.append(len(ids) - 1)
    lasts = np.cumsum([step.count("\n") + 1 for step in trace.substeps]) - 1
    return ids, [flags[last] for last in lasts]


@pytest.fixture(scope="module")
def skywork(tmp_path_factory):
    folder = tmp_path_factory.mktemp("skywork") / "Skywork-o1-Open-PRM-Qwen-2.5-1.5B"
    return folder, *write_skywork(folder)


def test_tokens_and_positions_are_the_authors(skywork):
    evaluator = load_evaluator(skywork[0])
    for trace in [*TRACES, LINES]:
        ids, places = published(skywork[0], trace)
        encoded = evaluator.encode(trace)
        assert encoded.ids.tolist() == ids
        assert encoded.reads.tolist() == places


def test_every_mode_equals_the_published_procedure(skywork):
    folder, model, head = skywork
    evaluator = load_evaluator(folder)
    assert (evaluator.format, evaluator.attention, evaluator.outputs) == ("value-head", "causal", Outputs.VALIDITY)

    def rows(trace, j):
        ids, places = published(folder, trace)
        return of_two(value_of(model, head, ids, places[: j + 1]))

    check_modes(evaluator, rows, [*TRACES, LINES])


def test_pickles_shards_and_safetensors_are_the_same_evaluator(tmp_path):
    folders = [tmp_path / name / "skywork" for name in ("plain", "single", "sharded", "both")]
    for folder in folders:
        write_skywork(folder)
    pickled(folders[1])
    pickled(folders[2], shards=3)
    write_shards(folders[3], load_file(folders[3] / "model.safetensors"))
    (folders[3] / "model.safetensors").unlink()
    loaded = [load_evaluator(folder) for folder in folders]
    assert len({evaluator.fingerprint for evaluator in loaded}) == 1
    assert {evaluator.name for evaluator in loaded} == {"skywork"}
    # The folders themselves are left as they were.
    assert not list(folders[1].glob("*.safetensors"))


def test_steps_on_one_line_are_an_option(tmp_path):
    card = {"template": {"lines": "spaces", "strip": "steps"}}
    model, head = write_skywork(tmp_path / "skywork", card=card)
    trace = Trace.of("q", ["a\nb ", " c"])

    def rows(trace, j):
        plain = Trace.of(trace.problem, [step.strip().replace("\n", " ") for step in trace.substeps])
        ids, places = published(tmp_path / "skywork", plain)
        return of_two(value_of(model, head, ids, places[: j + 1]))

    check_modes(load_evaluator(tmp_path / "skywork"), rows, [*TRACES, trace])


def test_pqm_is_put_together_from_its_weights_and_its_base(tmp_path):
    base, folder = tmp_path / "deepseek-math-7b-base", tmp_path / "PQM"
    model, head = write_pqm(folder, base)
    (folder / "stepsight.json").write_text(json.dumps({"base": str(base)}))
    evaluator = load_evaluator(folder)
    assert (evaluator.name, evaluator.format, evaluator.outputs) == ("PQM", "value-head", Outputs.VALIDITY)

    def published_pqm(trace):
        tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
        tokenizer.add_special_tokens(["[PRM]"])
        query = (
            "Below is an instruction that describes a task.\nWrite a response that appropriately completes the "
            f"request.\n\n### Instruction:\n{trace.problem}\n\n### Response: Let's think step by step"
        )
        steps = [step.strip() for step in trace.substeps]
        numbered = [
            step if step.startswith("Step ") else f"Step {number}: {step}" for number, step in enumerate(steps, 1)
        ]
        ids = tokenizer.encode(f"{query}\n" + " [PRM]\n".join(numbered) + " [PRM]", add_special_tokens=False).ids
        return ids, [place for place, token in enumerate(ids) if token == tokenizer.token_to_id("[PRM]")]

    for trace in TRACES:
        assert evaluator.encode(trace).ids.tolist() == published_pqm(trace)[0]

    def rows(trace, j):
        ids, places = published_pqm(trace)
        return of_two(value_of(model, head, ids, places[: j + 1]))

    check_modes(evaluator, rows)


def test_a_base_that_is_not_there_is_named(tmp_path):
    write_pqm(tmp_path / "PQM", tmp_path / "base")
    for base in ("no/such/folder", 3, ""):
        (tmp_path / "PQM" / "stepsight.json").write_text(json.dumps({"base": base}))
        with refused():
            load_evaluator(tmp_path / "PQM")


def test_another_base_is_refused(tmp_path):
    """Its tokenizer has more tokens than the weights know."""
    write_pqm(tmp_path / "PQM", tmp_path / "base")
    tokenizer = Tokenizer.from_file(str(tmp_path / "base" / "tokenizer.json"))
    tokenizer.add_special_tokens([f"<more {number}>" for number in range(9)])
    tokenizer.save(str(tmp_path / "base" / "tokenizer.json"))
    (tmp_path / "PQM" / "stepsight.json").write_text(json.dumps({"base": str(tmp_path / "base")}))
    with refused():
        load_evaluator(tmp_path / "PQM")


def test_weights_of_another_family_and_a_missing_first_token_are_refused(tmp_path):
    write_qwen_prm(tmp_path / "qwen")
    config = json.loads((tmp_path / "qwen" / "config.json").read_text())
    (tmp_path / "qwen" / "config.json").write_text(json.dumps(config | {"architectures": ["Qwen2ForPrmModel"]}))
    with refused():
        load_evaluator(tmp_path / "qwen")
    (tmp_path / "qwen" / "stepsight.json").write_text('{"template": {"bos": "<|endoftext|>"}}')
    with refused():
        load_evaluator(tmp_path / "qwen")
