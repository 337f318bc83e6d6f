import yaml

from stepsight.training.experiments.finetuning.study import StudyRun, read_study
from tests.cases import each
from tests.conftest import ROOT
from tests.messages import refused
from tests.training.experiments.finetuning.small import SMALL

BACKBONE = SMALL["start"]["backbone"]


def write(path, values):
    path.write_text(yaml.safe_dump(values))
    return path


def test_the_papers_study_has_its_recipe_seeds_and_subsets():
    study = read_study(ROOT / "training" / "configs" / "filter.yaml")
    recipe = study.recipe_for(ROOT / "training" / "configs")
    assert (recipe.init, recipe.epochs) == ("mistralai/Mistral-7B-v0.1", 4)
    # Two evaluators, four subsets, three seeds.
    assert len(list(study.runs())) == 24
    assert (study.seeds, study.match, study.processes) == ((42, 43, 44), None, 4)


def test_the_small_one_is_twelve_runs():
    study = read_study(ROOT / "training" / "configs" / "filter-mini.yaml")
    assert [run.name for run in study.runs()][2:5] == [
        "mini-bidir/red-42", "mini-bidir/random-42", "mini-bidir/val+red-43"
    ]  # fmt: skip
    assert len(list(study.runs())) == 12


def test_evaluators_of_a_hub_and_links_are_known_by_the_names_of_their_results(tmp_path):
    (tmp_path / "ReasonEval-7B").mkdir()
    (tmp_path / "other").symlink_to("ReasonEval-7B")
    for local in ("ReasonEval-7B", "other"):
        values = SMALL | {"evaluators": ["GAIR/ReasonEval-7B", str(tmp_path / local)]}
        with refused():
            read_study(write(tmp_path / "study.yaml", values))


def test_its_values_are_those_of_its_recipe_wherever_they_stand(tmp_path):
    def values(learnt, **changes):
        write(tmp_path / "recipe.yaml", learnt)
        return read_study(write(tmp_path / "study.yaml", SMALL | changes)).values(tmp_path)

    before = values({}, settings={"epochs": 2})
    assert (before["recipe.epochs"], before["recipe.batch_size"], before["match"]) == (2, 32, None)
    assert values({"epochs": 2}, settings={}, recipe="recipe.yaml") == before
    # What changes nothing of what is learnt may change, as in a run.
    assert values({"epochs": 2, "accumulation": 4, "notes": "slowly"}, settings={}, recipe="recipe.yaml") == before
    assert values({}, settings={"epochs": 2}, processes=2, threads=2, keep_models=True) == before
    assert values({"epochs": 3}, settings={}, recipe="recipe.yaml") == before | {"recipe.epochs": 3}


def test_a_folder_is_named_safely():
    assert StudyRun("GAIR/ReasonEval-7B", "red", 42).name == "GAIR-ReasonEval-7B/red-42"
    assert StudyRun("../..", "red", 42).name == "evaluator/red-42"


@each(
    "changes",
    [
        {"seeds": []},
        {"seeds": [1, 1]},
        {"subsets": ["best"]},
        {"match": 0},
        {"settings": {"seed": 1}},
        {"settings": {"init": "x"}},
        {"settings": {"epoch": 1}},
        {"start": None},
        {"engine": "none"},
        {"evaluators": ["a/b", "a b"]},
        {"evaluators": ["runs/x/final", "runs/y/final"]},
        {"seeds": [1, -1]},
        {"seeds": [2**32]},
        {"filter_seed": -1},
        {"start": SMALL["start"] | {"seed": -5}},
        {"start": {"backbone": BACKBONE | {"hidden": 30, "heads": 4}}},
        {"start": {"backbone": BACKBONE | {"layers": 0}}},
    ],
)
def test_meaningless_studies_are_refused(tmp_path, changes):
    values = {key: value for key, value in (SMALL | changes).items() if value is not None}
    with refused():
        read_study(write(tmp_path / "study.yaml", values))
