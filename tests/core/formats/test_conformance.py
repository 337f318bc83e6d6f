"""Every format reads its families as their authors do, in every mode, and refuses what is missing, misshapen or
another's.
"""

import json
import shutil
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from stepsight.core.evaluators.loading import identify_folder, load_evaluator
from stepsight.core.formats.recognition import FORMATS, format_of, recognise
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.placement import Placement
from stepsight.core.trace import Trace
from tests.checkpoints import (
    LLADA_CONFIG,
    MATH_SHEPHERD,
    QWEN_PRM,
    REASONEVAL_7B,
    REASONEVAL_34B,
    TOKEN_CLASSIFIERS,
)
from tests.conftest import ROOT
from tests.core.formats.by_hand import check_modes
from tests.core.formats.cases import CASES
from tests.messages import refused


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Writes a case once, and returns the evaluator's folder with what its authors' procedure needs."""
    made = {}

    def write(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("case")
            made[name] = folder / CASES[name].folder, CASES[name].write(folder)
        return made[name]

    return write


@pytest.fixture
def damaged(written, tmp_path):
    """Copies the folder of a case, to be damaged."""
    return lambda name: shutil.copytree(written(name)[0], tmp_path / "copy" / (CASES[name].folder or "evaluator"))


def parts(what):
    return [(name, part) for name, case in CASES.items() for part in getattr(case, what)]


def names(what):
    return [name for name, case in CASES.items() if getattr(case, what)]


def test_every_format_is_among_them_and_in_the_manual_and_shows_its_genuine_config():
    assert {case.format for case in CASES.values()} == {kind.name for kind in FORMATS}
    assert len({kind.name for kind in FORMATS}) == len(FORMATS)
    manual = (ROOT / "docs" / "evaluators.md").read_text("utf-8")
    for kind in FORMATS:
        assert f"| `{kind.name}` |" in manual
        documented = f"{kind.__doc__}{sys.modules[type(kind).__module__].__doc__}"
        assert json.dumps("architectures") in documented or kind.name == "stepsight"


@pytest.mark.parametrize("name", names("published"))
def test_ids_and_places_are_those_of_the_authors(written, name):
    (folder, _), case = written(name), CASES[name]
    evaluator = load_evaluator(folder)
    for trace in case.traces:
        ids, places = case.published(folder, trace)
        encoded = evaluator.encode(trace)
        # Behind the last step a conversation may go on, which no token before it sees.
        assert encoded.ids.tolist() == ids[: len(encoded)]
        assert encoded.reads.tolist() == places[: len(encoded.reads)]
        assert encoded.ends[-1] == len(encoded) - 1


@pytest.mark.parametrize("name", names("rows"))
def test_every_mode_equals_the_authors_procedure(written, name):
    (folder, made), case = written(name), CASES[name]
    evaluator = load_evaluator(folder)
    assert (evaluator.format, evaluator.attention, evaluator.outputs) == (case.format, "causal", case.outputs)
    assert evaluator.name == folder.name
    assert identify_folder(folder, Placement()) == (evaluator.fingerprint, evaluator.thresholds)
    one_pass = not evaluator.encoder.asks_each_step
    check_modes(evaluator, lambda trace, j: case.rows(folder, made, trace, j), case.traces, one_pass=one_pass)


@pytest.mark.parametrize("name", names("spelt"))
def test_a_text_that_spells_a_token_is_only_text(written, name):
    evaluator, spelt = load_evaluator(written(name)[0]), CASES[name].spelt
    assert all(map(evaluator.encoder.tokenizer.token_to_id, spelt[1:]))

    def counts(*texts):
        encoded = evaluator.encode(Trace.of(*texts[:1], texts[1:]))
        inputs = [call.ids for step in encoded.calls for call in step] or [encoded.ids]
        return [
            [int((ids == evaluator.encoder.tokenizer.token_to_id(token)).sum()) for token in spelt]
            for ids in inputs
        ]

    assert counts(f"{spelt[0]} q", f"a {spelt[-1]} b", *spelt) == counts("q", "a b", *("c" for _ in spelt))


@pytest.mark.parametrize(("name", "tensor"), parts("heads"))
def test_a_tensor_of_the_head_that_is_misshapen_or_missing_is_named(damaged, name, tensor):
    folder = damaged(name)
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {tensor: torch.zeros(7)}, folder / "model.safetensors", {"format": "pt"})
    with refused():
        load_evaluator(folder)
    del tensors[tensor]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with refused():
        load_evaluator(folder)


@pytest.mark.parametrize(("name", "key"), parts("shown"))
def test_a_config_of_another_family_is_refused_although_the_format_is_named(damaged, name, key):
    folder = damaged(name)
    config = json.loads((folder / "config.json").read_text())
    del config[key]
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["MistralModel"]}))
    path = folder / "stepsight.json"
    card = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(card | {"format": CASES[name].format}))
    with refused():
        load_evaluator(folder)


@pytest.mark.parametrize(("name", "token"), parts("tokens"))
def test_a_tokenizer_without_a_token_of_the_format_is_refused(damaged, name, token):
    folder = damaged(name)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    model = tokenizer["model"]
    if token in model["vocab"]:
        model["vocab"]["<gone>"] = model["vocab"].pop(token)
    model["merges"] = [pair for pair in model["merges"] if token not in ("".join(pair), *pair)]
    for added in tokenizer["added_tokens"]:
        added["content"] = "<gone>" if added["content"] == token else added["content"]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with refused():
        load_evaluator(folder)


def test_a_tensor_of_the_backbone_that_is_missing_is_named(damaged):
    folder = damaged("ReasonEval-7B")
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.self_attn.o_proj.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with refused():
        load_evaluator(folder)


def recognised(folder, config, card=None):
    checkpoint = Checkpoint(folder, config, card or {})
    return format_of(checkpoint, recognise(checkpoint))


@pytest.mark.parametrize(
    ("config", "card", "expected"),
    [
        (REASONEVAL_7B, {}, "reasoneval"),
        (REASONEVAL_34B, {"template": {"read": "last"}}, "reasoneval"),
        (QWEN_PRM, {}, "qwen-prm"),
        (TOKEN_CLASSIFIERS["bert"], {"labels": ["wrong", "right"]}, "token-classification"),
        (MATH_SHEPHERD, {"format": "math-shepherd"}, "math-shepherd"),
        (LLADA_CONFIG, {}, "llada"),
        (LLADA_CONFIG, {"format": "stepsight"}, "llada"),
        # What stepsight train writes names Transformers' class too.
        (
            {"model_type": "llama", "architectures": ["LlamaForTokenClassification"]},
            {"format": "stepsight"},
            "stepsight",
        ),
        ({"model_type": "llama"}, {"template": {}}, "stepsight"),
    ],
)
def test_each_layout_is_known_by_its_config_or_its_card(tmp_path, config, card, expected):
    assert recognised(tmp_path, config, card) == expected


@pytest.mark.parametrize(
    ("name", "config", "card"),
    [
        ("mistral", MATH_SHEPHERD, {}),
        # Names that only resemble a listed one.
        ("math-shepherd", MATH_SHEPHERD, {}),
        ("models--nobody--VersaPRM/snapshots/0a1b", MATH_SHEPHERD, {}),
        ("classifier", {"model_type": "qwen3", "architectures": ["Qwen3ForSequenceClassification"]}, {}),
        ("unknown", REASONEVAL_7B, {"format": "prm"}),
        ("list", REASONEVAL_7B, {"format": ["reasoneval"]}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_folder_of_no_format_is_refused(tmp_path, name, config, card):
    with refused():
        recognised(tmp_path / name, config, card)
