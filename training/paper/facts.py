"""Facts: named numbers, from the paper or measured by StepSight, with which the items of the paper are compared.

A fact is NaN if its figure is undefined. For example, the AUC of the last third is undefined if the last thirds
contain only errors.

    TABLE/SECTION/ROW/COLUMN             a cell of a table, in the table's unit
    grid/…, tab:…/…                      the results of a grid's runs, in percent and percentage points
    recipe/FILE/KEY, grid-design/KEY     a setting of a configuration
    dataset/NAME/traces, …/errors        counts of a benchmark's file
    prm800k-train/…, prm800k-test/…      counts and shares of labels, in percent
    neutral/…                            how well LLaDA-PRM detects neutral steps, in percent
    training/…                           a training run
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json, read_bytes, read_json
from stepsight.core.hubs.checkpoint_files import CARD
from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.metrics import ternary
from stepsight.core.metrics.binary import auc
from stepsight.core.metrics.published import PublishedRow, PublishedTable, published, reference_tables
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.metrics.table import SILENT, Third
from stepsight.core.paths import asset
from stepsight.core.scores import Thresholds
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.evaluators import StoredEvaluator, evaluators_of
from stepsight.storage.traces.queries import Dataset, iterate_traces, list_datasets
from stepsight.training.data.transforms import is_balanced
from stepsight.training.evaluate.diagnostics import decide, shares
from stepsight.training.evaluate.evaluation import evaluate, with_thresholds
from stepsight.training.experiments.finetuning.recipe import read_recipe
from stepsight.training.experiments.finetuning.results import Result
from stepsight.training.experiments.finetuning.study import read_study
from stepsight.training.experiments.grid.design import read_design
from stepsight.training.experiments.grid.pairs import by_size_and_data, contrast, gains, pair_values
from stepsight.training.experiments.grid.results import (
    ACCURACY,
    LATE_AUC,
    MACRO_AUC,
    MACRO_F1,
    METRICS,
    GridResults,
    Key,
    read_results,
)
from stepsight.training.train.config import read_config
from stepsight.training.train.init import llama_config

Facts = dict[str, float]

CONFIGS = Path(__file__).parent.parent / "configs"
_RECIPES = ("llada-prm-8b", "llada-prm-8b-bs64", "wizardmath-control")
_PLACES = ("Params", "Size", "Data", "Seed")
_TAUS = (0.5, 0.15)
_RHO = 0.5
# Section 6.1; the number kept is in a table.
_POOL = 10_000.0
_BOTH = {"bidirectional": "bidir", "causal": "causal"}
_HEADS = METRICS | {ACCURACY: "Acc"}
_SHORT = {ACCURACY: "Acc", MACRO_F1: "F1", MACRO_AUC: "AUC"}
_SUBSETS = {"val+red": "Val + Red", "val": "Val-only", "red": "Red-only", "random": "Random"}
_DIFFERENCES = {
    "tab:online-vs-offline": ("LLaDA-PRM (online)", "LLaDA-PRM (offline)"),
    "tab:main-3k-results": ("LLaDA-bidir", "LLaDA-causal"),
}


def table_facts() -> Facts:
    """Return the cells of the paper's tables.

    If rows share a name and the table has no sections, the first cell of a row becomes part of the name.
    """
    facts: Facts = {}
    for table in reference_tables():
        for row in table.rows:
            facts |= {_cell(table, row, place): value for place, value in enumerate(row.values)}
    return facts


def paper_facts() -> Facts:
    """Return the facts that the paper itself provides: the cells of its tables, and the results of its grid."""
    runs = read_results(asset("reference", "full-grid-results.json"))
    return grid_facts(runs) | table_facts() | {"study/filter/sample": _POOL}


def cells_of(table: PublishedTable) -> list[str]:
    """Return the fact names of a table's cells, except cells that only identify a row."""
    places = [place for place, column in enumerate(table.columns) if column.name not in _PLACES]
    return [_cell(table, row, place) for row in table.rows for place in places]


def _cell(table: PublishedTable, row: PublishedRow, place: int) -> str:
    section = row.section
    if not section and sum(one.name == row.name for one in table.rows) > 1:
        section = f"{row.values[0]:g}"
    return f"{table.label}/{section}/{row.name}/{table.columns[place].name}"


def recipe_facts() -> Facts:
    """Return the settings of the paper's recipes in `training/configs`, and the default thresholds."""
    thresholds = Thresholds()
    facts = {"threshold/validity": thresholds.validity, "threshold/redundancy": thresholds.redundancy}
    for name in _RECIPES:
        facts |= _numbers(f"recipe/{name}", dataclasses.asdict(read_config(CONFIGS / f"{name}.yaml")))
    learnt = read_recipe(CONFIGS / "mistral-7b-sft.yaml")
    facts |= _numbers("recipe/mistral-7b-sft", dataclasses.asdict(learnt))
    assert learnt.plan is not None
    facts["recipe/mistral-7b-sft/per_device"] = learnt.batch_size / learnt.plan.devices / learnt.accumulation
    study = read_study(CONFIGS / "filter.yaml")
    facts["study/filter/sample"] = float(study.sample or 0)
    facts["study/filter/seeds"] = float(len(study.seeds))
    facts |= {f"study/filter/seed/{place}": float(seed) for place, seed in enumerate(study.seeds)}
    return facts | _design_facts()


def _design_facts() -> Facts:
    design = read_design(CONFIGS / "grid.yaml")
    facts: Facts = {"grid-design/processes": design.processes, "grid-design/classes": len(Label)}
    facts |= {f"grid-design/seeds/{place}": float(seed) for place, seed in enumerate(design.seeds)}
    amounts = list(design.data)
    for run in design.runs():
        config = design.config(run)
        assert config.backbone is not None
        source = config.data.sources[0]
        facts |= _numbers("grid-design", dataclasses.asdict(config))
        facts[f"grid-design/traces/{amounts.index(run.data)}"] = float(source.sample or 0)
        facts[f"grid-design/batch_size/{run.size}"] = config.batch_size
        facts[f"grid-design/per_device/{run.size}"] = config.batch_size / design.processes
        facts["grid-design/rho"] = source.rho
        facts["grid-design/rope_theta"] = config.backbone.rope_theta
        facts["grid-design/context"] = config.backbone.context
        llama = llama_config(config.backbone, config.vocabulary, config.attention)
        facts["grid-design/norm_eps"] = llama.rms_norm_eps
        facts |= _dimensions(f"LLaDA-{run.size}", config.backbone)
    facts["grid-design/test_rho"] = design.tests[0].source.rho
    plan = read_config(CONFIGS / "llada-prm-8b.yaml").plan
    assert plan is not None
    return facts | _dimensions("LLaDA-8B-Base (ref.)", plan.backbone)


def _dimensions(name: str, backbone: Any) -> Facts:
    values = (backbone.hidden, backbone.layers, backbone.heads, backbone.mlp)
    columns = ("d_model", "n_layers", "n_heads", "MLP")
    return {f"tab:scratch-configs//{name}/{column}": v for column, v in zip(columns, values, strict=True)}


def _numbers(prefix: str, values: object) -> Facts:
    """Return all numbers in nested lists and mappings, keyed by their paths."""
    if isinstance(values, Mapping):
        items: Iterator[tuple[object, object]] = iter(values.items())
    elif isinstance(values, Sequence) and not isinstance(values, str):
        items = iter(enumerate(values))
    else:
        is_number = isinstance(values, int | float) and not isinstance(values, bool)
        return {prefix: float(values)} if is_number else {}  # type: ignore[arg-type]
    facts: Facts = {}
    joint = "/" if prefix.count("/") < 2 and "/" not in prefix.removeprefix("recipe/") else "."
    for key, value in items:
        facts |= _numbers(f"{prefix}{joint}{key}", value)
    return facts


def grid_facts(results: GridResults) -> Facts:
    """Return the facts on the offline results of a grid on its first test set, as in section 4.2 and appendix B of
    the paper."""
    key = results.keys[0]
    facts: Facts = {"grid/runs": len(results.runs)}
    for name, title in METRICS.items():
        found = contrast(gains(pair_values(results, key, name)))
        facts[f"tab:paired-stats//{title}/Pairs"] = found.pairs or float("nan")
        wins = found.wins if found.pairs else float("nan")
        facts[f"grid/wins/{name}"] = facts[f"tab:paired-stats//{title}/Wins"] = wins
        facts[f"grid/mean/{name}"] = facts[f"tab:paired-stats//{title}/Mean Δ"] = 100 * found.mean.number
    facts["grid/pairs"] = facts[f"tab:paired-stats//{METRICS[MACRO_AUC]}/Pairs"]
    cells = list(by_size_and_data(pair_values(results, key, MACRO_AUC)))
    facts["grid/cells"] = len(cells)
    facts["grid/cells_ahead"] = sum(gains(pairs).mean() > -1e-9 for *_, pairs in cells)
    late = pair_values(results, key, LATE_AUC)
    for mask in _BOTH:
        facts[f"grid/late/{mask}"] = 100 * float(late[mask].mean())
    facts["grid/late/gain"] = 100 * float(gains(late).mean())
    return facts | _run_facts(results, key) | _mean_facts(results, key) | _detailed_facts(results, key)


def _run_facts(results: GridResults, key: Key) -> Facts:
    facts: Facts = {}
    for run in results.runs:
        one, figures = run.settings, run.figures[key]
        row = f"tab:full-grid-results/{one.size}, {one.data} traces, seed {one.seed}/{_BOTH[one.mask].title()}"
        facts |= {f"{row}/{_HEADS[name]}": 100 * figures.whole[name] for name in METRICS}
    return facts


def _mean_facts(results: GridResults, key: Key) -> Facts:
    """Return the means over seeds of the runs with the most training data."""
    facts: Facts = {}
    for name, short in _SHORT.items():
        pairs = pair_values(results, key, name)
        most = pairs.index.unique("data")[-1]
        for data, size, part in by_size_and_data(pairs):
            if data != most:
                continue
            means = {mask: round(100 * float(part[mask].mean()), 1) for mask in _BOTH}
            table = "tab:main-3k-results/"
            facts |= {f"{table}/LLaDA-{_BOTH[mask]}/{size} {short}": value for mask, value in means.items()}
            row = "Δ LLaDA-bidir - LLaDA-causal (pp)"
            facts[f"{table}/{row}/{size} {short}"] = means["bidirectional"] - means["causal"]
    return facts


def _detailed_facts(results: GridResults, key: Key) -> Facts:
    """Return the facts that need figures by class and by third, which only StepSight's own runs have."""
    figures = [run.figures[key] for run in results.runs]
    neutral = [one.classes[Label.NEU.text] for one in figures if one.classes]
    if not neutral:
        return {}
    f1, area = (np.array([100 * one[name] for one in neutral]) for name in ("f1", "auc"))
    facts = {
        "grid/test_traces": figures[0].traces,
        "grid/early/neg": figures[0].thirds[Third.EARLY.value][Label.NEG.text],
        "grid/neu_f1": float(np.nanmean(f1)),
        "grid/neu_auc": float(np.nanmean(area)),
    }
    return facts | {"grid/neu_f1/least": float(np.nanmin(f1)), "grid/neu_f1/greatest": float(np.nanmax(f1))}


def filter_facts(results: Sequence[Result]) -> Facts:
    """Return the cells of the data filtering table, from models fine-tuned on the filtered subsets."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for one in results:
        name = next((row.evaluator for row in published("mr-math-invalid") if row.names(one.scorer)), one.scorer)
        if one.subset in _SUBSETS:
            groups.setdefault((name, _SUBSETS[one.subset]), []).append(one)
    sizes = {scorer: runs[0].rows for (scorer, subset), runs in groups.items() if subset == "Val + Red"}
    facts: Facts = {}
    for (scorer, subset), runs in groups.items():
        section = f"{sizes.get(scorer, runs[0].rows)}" if subset == "Random" else scorer
        row = f"tab:filter_ablation/{section}/{subset}"
        facts[f"{row}/N"] = float(runs[0].rows or 0)
        facts[f"{row}/Acc"] = 100 * float(np.mean([np.mean(one.correct) for one in runs]))
        facts[f"{row}/Tok"] = float(np.mean([one.length for one in runs]))
    return facts


def training_facts(folder: Path) -> Facts:
    """Return the facts of a training run, read from the folder of the evaluator that the run produced. Raises
    `UserError` if the folder does not come from a training run."""
    try:
        about = read_json(folder / CARD)["provenance"]
        history = parse_json(read_bytes(folder / "log_history.json"))
        devices = int(str(about["devices"]).split(" ")[0])
        return {
            "training/steps": float(about["steps"]),
            "training/seconds": float(about["seconds"]),
            "training/gpu_hours": devices * float(about["seconds"]) / 3600,
            "training/first_loss": float(history[0]["loss"]),
            "training/final_loss": float(about["final_loss"]),
        }
    except (OSError, KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"{folder}: not the folder of a training run ({type(error).__name__}: {error}).",
            "Name what stepsight train wrote.",
        ) from None


def store_facts(store: Store) -> Facts:
    """Return facts about the paper's benchmarks in the store, and about how well evaluators do on them."""
    facts: Facts = {}
    measured: dict[tuple[str, str, str], Mapping[str, float]] = {}
    names = json.loads(asset("reference", "names.json").read_text(encoding="utf-8"))["datasets"]
    for name, about in names.items():
        for dataset in list_datasets(store):
            if dataset.kind == about["kind"]:
                facts |= _benchmark_facts(store, dataset, name, about, measured)
    for table in reference_tables():
        facts |= _measured_cells(table, measured)
    return facts


def _benchmark_facts(
    store: Store,
    dataset: Dataset,
    name: str,
    about: Mapping[str, Any],
    measured: dict[tuple[str, str, str], Mapping[str, float]],
) -> Facts:
    gold = read_gold(store, dataset)
    inside = [not about["group"] or group == about["group"] for group in gold.groups]
    if sum(inside) != about["traces"]:
        return {}
    wrong = set(gold.trace[gold.valid == 0].tolist())
    facts: Facts = {f"dataset/{name}/traces": sum(inside)}
    if about["errors"] == Errors.INVALID.value:
        facts[f"dataset/{name}/errors"] = sum(place in wrong for place, there in enumerate(inside) if there)
    evaluators = [with_thresholds(store, dataset, one) for one in evaluators_of(store, dataset.id)]
    for row in evaluate(store, dataset, evaluators, draws=1, group=about["group"]).rows:
        if row.published is not None and row.errors.value == about["errors"]:
            values = {key: one.value.number for key, one in row.measured.items() if one.value.exists}
            measured[name, row.published.evaluator, row.mode.value] = values
    return facts


def _measured_cells(table: PublishedTable, measured: Mapping[tuple[str, str, str], Mapping[str, float]]) -> Facts:
    facts: Facts = {}
    for row in table.rows:
        values = measured.get((row.dataset, row.evaluator, row.mode), {})
        for place, column in enumerate(table.columns):
            if column.metric in values:
                facts[_cell(table, row, place)] = round(100 * values[column.metric], 1)
    first, second = _DIFFERENCES.get(table.label, ("", ""))
    for row in table.rows if first else ():
        for place, column in enumerate(table.columns):
            ends = [f"{table.label}/{row.section}/{name}/{column.name}" for name in (first, second)]
            if row.name.startswith("Δ") and all(end in facts for end in ends):
                facts[_cell(table, row, place)] = facts[ends[0]] - facts[ends[1]]
    return facts


def label_facts(store: Store, dataset: Dataset, split: str) -> Facts:
    """Return the label counts and shares in a PRM800K dataset, and its trace count in the grid's balanced pool.

    `split` is the part of PRM800K that the dataset holds, `train` or `test`.
    """
    gold = read_gold(store, dataset)
    labels = gold.label[gold.label != SILENT]
    facts: Facts = {f"prm800k-{split}/traces": len(gold.ids), f"prm800k-{split}/steps": len(labels)}
    fractions = shares(labels)
    facts |= {f"prm800k-{split}/{label.text}": 100 * float(fractions[label]) for label in Label}
    # Appendix E: the test set by the ratio alone.
    traces = iterate_traces(store, dataset.id)
    facts[f"pool/{split}"] = sum(is_balanced(trace, _RHO, every_label=split == "train") for trace in traces)
    return facts


def neutral_facts(store: Store, dataset: Dataset) -> Facts:
    """Return figures on how well LLaDA-PRM, in offline mode, detects the neutral steps of a PRM800K dataset. The
    result is empty if LLaDA-PRM has not judged the dataset."""
    evaluator = next((one for one in evaluators_of(store, dataset.id) if _is_llada_prm(one)), None)
    if evaluator is None:
        return {}
    table = read_table(store, read_gold(store, dataset), evaluator.id, Mode.OFFLINE)
    plain = decide(table, Label.NEU)
    steps = ternary.classify(table)
    facts: Facts = {
        "neutral/predicted": float((steps.predicted == Label.NEU).sum()),
        "neutral/predicted_share": 100 * plain.predicted,
        "neutral/f1": 100 * plain.f1.number,
        "neutral/auc": 100 * auc(steps.against_rest(Label.NEU)).number,
    }
    for tau in _TAUS:
        found = decide(table, Label.NEU, tau)
        for name in ("f1", "precision", "recall"):
            facts[f"neutral/{tau:g}/{name}"] = 100 * getattr(found, name).number
    return facts


def _is_llada_prm(evaluator: StoredEvaluator) -> bool:
    return any(row.evaluator == "LLaDA-PRM" and row.names(evaluator.name) for row in published("mr-math-invalid"))
