import dataclasses
from pathlib import Path

import pytest
import yaml

import training
from core.errors import UserError
from training.config import Backbone, Data, TrainConfig, read_config

SHIPPED = Path(training.__file__).parent / "configs"
BACKBONE = {"hidden": 32, "layers": 1, "heads": 2, "mlp": 48}
SMALL = {"attention": "causal", "data": {"synthetic": 10}, "backbone": BACKBONE}


@pytest.fixture
def read(tmp_path):
    """Read a configuration written as YAML, or given as YAML text."""

    def read(values):
        path = tmp_path / "config.yaml"
        path.write_text(values if isinstance(values, str) else yaml.safe_dump(values), encoding="utf-8")
        return read_config(path)

    return read


def test_what_a_file_leaves_out_has_its_default(read):
    assert read(SMALL) == TrainConfig("causal", Data(synthetic=10), Backbone(32, 1, 2, 48))
    assert read(SMALL).backbone.context == 4096


def test_every_key_can_be_set(read):
    values = SMALL | {
        "data": {"synthetic": 3, "seed": 4, "files": ["a.jsonl", "b.jsonl"]},
        "backbone": BACKBONE | {"context": 128},
        "vocabulary": 300,
        "truncation": "as-labelled",
        "epochs": 2,
        "batch_size": 4,
        "learning_rate": 1,
        "betas": [0.5, 1],
        "weight_decay": 0,
        "warmup_steps": 0,
        "clip": 2.5,
        "seed": 7,
        "bf16": True,
        "save_steps": 5,
        "notes": "why",
    }
    config = read(values)
    assert (config.data, config.backbone.context) == (Data(3, 4, ("a.jsonl", "b.jsonl")), 128)
    # Whole numbers become real ones where those are meant.
    assert (config.learning_rate, config.betas, config.weight_decay) == (1.0, (0.5, 1.0), 0.0)
    assert isinstance(config.learning_rate, float)
    given = {key: getattr(config, key) for key in values if key not in ("data", "backbone", "betas")}
    assert given == {key: values[key] for key in given}
    assert set(values) | {"init"} == {field.name for field in dataclasses.fields(TrainConfig)}


def test_an_evaluator_can_be_the_start(read):
    config = read({"attention": "causal", "data": {"files": ["a.jsonl"]}, "init": "mini-bidir"})
    assert (config.init, config.backbone) == ("mini-bidir", None)


def test_the_shipped_pair_differs_in_its_mask_alone():
    bidirectional, causal = (read_config(SHIPPED / f"mini-{name}.yaml") for name in ("bidir", "causal"))
    assert (bidirectional.attention, causal.attention) == ("bidirectional", "causal")
    assert dataclasses.replace(causal, attention="bidirectional") == bidirectional


BAD = [
    ({"learning_rte": 1.0}, r"unknown key learning_rte\. Did you mean learning_rate\?"),
    ({"backbone": BACKBONE | {"layer": 1}}, r"unknown key backbone\.layer\. Did you mean backbone\.layers\?"),
    ({"xyzzy": 1}, r"unknown key xyzzy\. Known keys: attention, data"),
    ({7: 1}, r"unknown key 7\."),
    ({"data": {}}, "data names no traces"),
    ({"data": [1]}, "data is list, expected keys with values"),
    ({"data": {"synthetic": -1}}, r"data\.synthetic is -1, expected 0 or more"),
    ({"data": {"files": "a.jsonl"}}, r"data\.files is 'a\.jsonl', expected a list\."),
    ({"data": {"files": [1]}}, r"data\.files is 1, expected str"),
    ({"attention": "sideways"}, "attention is 'sideways', expected one of bidirectional, causal"),
    ({"truncation": "none"}, "truncation is 'none', expected one of random, as-labelled"),
    ({"backbone": None}, "give either backbone .* or init"),
    ({"init": "mini-bidir"}, "give either backbone .* or init"),
    ({"backbone": {"hidden": 32}}, r"the key backbone\.layers is missing"),
    ({"backbone": BACKBONE | {"heads": 3}}, r"backbone\.hidden is not an even multiple of backbone\.heads"),
    # Rotary positions pair the dimensions of a head: 6 / 2 = 3 is odd.
    ({"backbone": BACKBONE | {"hidden": 6}}, r"backbone\.hidden is not an even multiple"),
    ({"backbone": BACKBONE | {"heads": 0}}, r"backbone\.heads is 0, expected more than 0"),
    ({"epochs": 0}, "epochs is 0, expected more than 0"),
    ({"epochs": 1.5}, r"epochs is 1\.5, expected int"),
    ({"epochs": True}, "epochs is True, expected int"),
    ({"bf16": 1}, "bf16 is 1, expected bool"),
    ({"batch_size": -4}, "batch_size is -4, expected more than 0"),
    ({"save_steps": 0}, "save_steps is 0, expected more than 0"),
    ({"warmup_steps": -1}, "warmup_steps is -1, expected 0 or more"),
    ({"vocabulary": 0}, "vocabulary is 0, expected more than 0"),
    ({"learning_rate": float("nan")}, "learning_rate is nan, expected more than 0"),
    ({"betas": [0.9]}, r"betas is \[0\.9\], expected a list of 2"),
    ({"betas": 0.9}, r"betas is 0\.9, expected a list of 2"),
    ({"seed": None}, "seed is None, expected int"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[str(change)[:40] for change, _ in BAD])
def test_a_bad_value_is_named_with_its_file(read, tmp_path, change, message):
    with pytest.raises(UserError, match=message) as caught:
        read(SMALL | change)
    assert str(caught.value).startswith(str(tmp_path / "config.yaml"))


@pytest.mark.parametrize("key", ["attention", "data"])
def test_a_missing_key_is_named(read, key):
    with pytest.raises(UserError, match=f"the key {key} is missing"):
        read({name: value for name, value in SMALL.items() if name != key})


def test_the_trap_of_exponents_is_explained(read):
    with pytest.raises(UserError, match=r"learning_rate is '1e-3', expected float\. .*write 1\.0e-3"):
        read(yaml.safe_dump(SMALL) + "learning_rate: 1e-3\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is NoneType, expected keys with values"),
        ("- a\n", "the file is list"),
        ("a: [", "not YAML"),
        ("a: !!python/object:os.system x", "not YAML"),
        ("\x00", "not YAML"),
    ],
)
def test_what_is_no_configuration_is_refused(read, text, message):
    with pytest.raises(UserError, match=message):
        read(text)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(UserError, match=r"none\.yaml: cannot be read .No such file"):
        read_config(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes("notes: é".encode("latin-1"))
    with pytest.raises(UserError, match=r"latin\.yaml: not YAML"):
        read_config(tmp_path / "latin.yaml")
