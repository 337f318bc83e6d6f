import dataclasses
import re
import textwrap

import pytest
import yaml

import stepsight.training.data.sources_config
from stepsight.training.data.sources_config import Data, Source, TraceOrigin
from stepsight.training.experiments.grid.design import read_design
from stepsight.training.synth.corpus import generate
from stepsight.training.train.config import Backbone, Expected, Lora, TrainConfig, read_config
from tests.cases import each
from tests.conftest import ROOT
from tests.messages import refused

SHIPPED = ROOT / "training" / "configs"
FAMILY = next(generate(0, 1)).meta["family"]
BACKBONE = {"hidden": 32, "layers": 1, "heads": 2, "mlp": 48}
SYNTHETIC = {"kind": "synthetic", "size": 10}
SMALL = {"attention": "causal", "data": {"sources": [SYNTHETIC]}, "backbone": BACKBONE}
INIT = SMALL | {"backbone": None, "init": "a"}


@pytest.fixture
def read(tmp_path):
    """Read a configuration written as YAML, or given as YAML text."""

    def read(values):
        path = tmp_path / "config.yaml"
        path.write_text(values if isinstance(values, str) else yaml.safe_dump(values), encoding="utf-8")
        return read_config(path)

    return read


def test_omitted_keys_have_their_defaults(read):
    assert read(SMALL) == TrainConfig("causal", Data((Source("synthetic", size=10),)), Backbone(32, 1, 2, 48))
    assert read(SMALL).backbone.context == 4096


def test_every_key_can_be_set(read):
    values = SMALL | {
        "data": {
            "sources": [
                SYNTHETIC | {"seed": 4, "families": [FAMILY], "weight": 2},
                {"kind": "prmbench", "path": "a/*.jsonl", "skip_bad": True, "rho": 0.5, "every_label": True}
                | {"valid": "pos", "weight": 0.25},
                {"kind": "store", "dataset": "mine"},
            ],
            "benchmarks": [{"kind": "problems", "path": "b.jsonl"}, SYNTHETIC | {"seed": 5}],
        },
        "backbone": BACKBONE | {"context": 128},
        "vocabulary": 3000,
        "truncation": "as-labelled",
        "epochs": 2,
        "batch_size": 4,
        "learning_rate": 1,
        "betas": [0, 0.5],
        "weight_decay": 0,
        "warmup_steps": 0,
        "clip": 2.5,
        "seed": 7,
        "bf16": True,
        "max_length": 100,
        "accumulation": 2,
        "activation_checkpointing": True,
        "fsdp": True,
        "saved_dtype": "bfloat16",
        "save_steps": 5,
        "notes": "why",
        "loss": "example",
        "too_long": "truncate",
        "tokenizer": "folder",
        "initialisation": "mitchell",
        "order": "sorted",
        "plan": {
            "gpu": 141,
            "devices": 2,
            "traces": 5,
            "tokens": 6,
            "backbone": BACKBONE,
            "vocabulary": 7,
        },
    }
    config = read(values)
    sources = (
        Source("synthetic", size=10, seed=4, families=(FAMILY,), weight=2.0),
        Source("prmbench", path="a/*.jsonl", skip_bad=True, rho=0.5, every_label=True, valid="pos", weight=0.25),
        Source("store", dataset="mine"),
    )
    assert config.data == Data(
        sources, (TraceOrigin("problems", path="b.jsonl"), TraceOrigin("synthetic", size=10, seed=5))
    )
    assert config.backbone.context == 128
    assert config.plan == Expected(141, 2, 5, 6, Backbone(32, 1, 2, 48), 7)
    # Whole numbers become real ones where those are meant.
    assert (config.learning_rate, config.betas, config.weight_decay) == (1.0, (0.0, 0.5), 0.0)
    assert isinstance(config.learning_rate, float)
    others = ("data", "backbone", "betas", "plan", "head")
    given = {key: getattr(config, key) for key in values if key not in others}
    assert given == {key: values[key] for key in given}
    assert set(values) | {"init", "lora"} == {field.name for field in dataclasses.fields(TrainConfig)}


def test_the_keys_of_adapters(read):
    assert read(INIT | {"lora": {}}).lora == Lora(16, None, 0.0, ())
    assert read(INIT | {"lora": {}}).lora.scale == 32
    values = {"rank": 4, "alpha": 2, "dropout": 0.1, "targets": ["q_proj", "v_proj"]}
    assert read(INIT | {"lora": values}).lora == Lora(4, 2.0, 0.1, ("q_proj", "v_proj"))
    assert read(INIT | {"lora": values}).lora.scale == 2


def shipped(name):
    return read_config(SHIPPED / f"{name}.yaml")


def differing(first, second):
    """The keys in which two configurations differ."""
    return {
        field.name
        for field in dataclasses.fields(first)
        if getattr(first, field.name) != getattr(second, field.name)
    }


def test_the_twins_differ_in_their_mask_and_start_alone():
    bidirectional, causal = shipped("mini-bidir"), shipped("mini-causal")
    assert differing(bidirectional, causal) == {"attention", "init"}
    assert (bidirectional.attention, causal.attention) == ("bidirectional", "causal")
    assert differing(shipped("endings-as-labelled"), shipped("endings-random")) == {"truncation"}
    first, second = (read_design(SHIPPED / f"grid-mini-{name}.yaml") for name in ("as-labelled", "random"))
    assert differing(first, second) == {"name", "notes", "base"}
    assert first.base | {"truncation": "random"} == second.base


def test_the_data_that_the_documentation_shows_can_be_read(read):
    manual = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    page = re.search(r"```yaml\n(.*?)```", manual, re.DOTALL)[1]
    docstring = textwrap.dedent(stepsight.training.data.sources_config.__doc__.partition("\n\n")[2])
    for text in (page, docstring):
        config = read(SMALL | yaml.safe_load(text))
        assert [source.kind for source in config.data.sources] == [
            "synthetic", "prm800k", "prmbench", "store", "store",
        ]  # fmt: skip
        assert [benchmark.kind for benchmark in config.data.benchmarks] == ["prm800k", "problems"]


RECIPES = ["llada-prm-8b", "llada-prm-8b-bs64", "wizardmath-control"]


@pytest.mark.parametrize("name", RECIPES)
def test_the_same_without_the_problems_of_the_benchmarks(name):
    paper, held_out = shipped(name), shipped(f"{name}-held-out")
    assert differing(paper, held_out) == {"data"}
    assert [one.kind for one in held_out.data.benchmarks] == ["prm800k", "mr-math-invalid", "mr-math-redundant"]
    assert dataclasses.replace(held_out.data, benchmarks=()) == paper.data
    assert held_out.plan == paper.plan


@pytest.mark.parametrize(("name", "least"), [*zip(RECIPES, (10, 3, 3), strict=True), ("grid", 10)])
def test_every_field_of_a_recipe_says_where_it_is_from(name, least):
    text = (SHIPPED / f"{name}.yaml").read_text(encoding="utf-8")
    keys = "|".join(field.name for field in dataclasses.fields(TrainConfig) if field.name != "notes")
    fields = re.findall(rf"^(?:  )?(?:{keys}): [^\[{{].*$", text, re.MULTILINE)
    assert len(fields) >= least
    assert [field for field in fields if not re.search(r"# (section|appendix|A\.\d|not said)", field)] == []


# Least and greatest values and the words of a key stand in the manual's tables, which are those of the code.
BAD = [
    {"backbone": BACKBONE | {"kv_heads": 3}},
    {"objective": "masked-tokens"},
    {"loss": ["example", "pooled"]},
    INIT | {"lora": {}} | {"fsdp": True, "activation_checkpointing": True},
    {"numbers": "groups"},
    {"backbone": None, "init": "a", "tokenizer": "b"},
    {"backbone": None, "init": "a", "initialisation": "mitchell"},
    INIT | {"lora": {"rnk": 4}},
    INIT | {"lora": {"targets": "q_proj"}},
    INIT | {"lora": True},
    {"lora": {}},
    {"head": {"layers": "mixture"}},
    {"attention": "causal", "reading": "twice"},
    {"plan": {"backbone": BACKBONE | {"heads": 5}}},
    {"learning_rte": 1.0},
    {"backbone": BACKBONE | {"layer": 1}},
    {"xyzzy": 1},
    {7: 1},
    {"data": {}},
    {"data": [1]},
    {"data": {"source": []}},
    {"data": {"sources": SYNTHETIC}},
    {"data": {"sources": [SYNTHETIC, 1]}},
    {"data": {"sources": [{"size": 1}]}},
    {"data": {"sources": [SYNTHETIC | {"wieght": 2}]}},
    # A benchmark is not trained on, so it has no weight.
    {"data": {"sources": [SYNTHETIC], "benchmarks": [SYNTHETIC | {"weight": 2}]}},
    {"data": {"sources": [SYNTHETIC | {"families": [1]}]}},
    {"data": {"sources": [SYNTHETIC | {"weight": "2"}]}},
    {"data": {"sources": [SYNTHETIC | {"skip_bad": 1}]}},
    {"data": {"sources": []}},
    {"truncation": "continued"},
    {"attention": "sideways"},
    {"backbone": None},
    {"init": "mini-bidir"},
    {"backbone": {"hidden": 32}},
    {"backbone": BACKBONE | {"heads": 3}},
    # Rotary positions pair the dimensions of a head: 6 / 2 = 3 is odd.
    {"backbone": BACKBONE | {"hidden": 6}},
    {"epochs": 0},
    {"epochs": 1.5},
    {"epochs": True},
    {"bf16": 1},
    {"learning_rate": float("nan")},
    {"betas": [0.9]},
    {"betas": 0.9},
    {"seed": None},
    {"batch_size": 6, "accumulation": 4},
    {"max_length": 5000},
]


# Whole files.
BAD_TEXTS = [
    "data: {sources: [{kind: synthetic, size: 10}]}",
    "attention: causal",
    # A number with an exponent needs a point, or YAML reads it as a text.
    f"{yaml.safe_dump(SMALL)}learning_rate: 1e-3\n",
    "",
    "- a\n",
    "a: [",
    "loss: example\nloss: pooled",
    "a: !!python/object:os.system x",
    "\x00",
]


@each("values", [*(SMALL | change for change in BAD), *BAD_TEXTS])
def test_what_is_refused_is_named_with_its_file(read, values):
    with refused():
        read(values)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with refused():
        read_config(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes("notes: é".encode("latin-1"))
    with refused():
        read_config(tmp_path / "latin.yaml")
