import pytest
import yaml

from core.errors import UserError
from tests.conftest import ROOT
from tests.training.finetuning.small import SMALL
from training.finetuning.study import Cell, read_study


def write(path, values):
    path.write_text(yaml.safe_dump(values))
    return path


def test_the_papers_study_has_its_recipe_seeds_and_subsets():
    study = read_study(ROOT / "training" / "configs" / "filter.yaml")
    recipe = study.recipe_for(ROOT / "training" / "configs")
    assert (recipe.init, recipe.epochs) == ("mistralai/Mistral-7B-v0.1", 4)
    # Two evaluators, four subsets, three seeds.
    assert len(list(study.cells())) == 24
    assert (study.seeds, study.match, study.processes) == ((42, 43, 44), None, 4)


def test_the_small_one_is_twelve_runs():
    study = read_study(ROOT / "training" / "configs" / "filter-mini.yaml")
    assert [cell.name for cell in study.cells()][2:5] == [
        "mini-bidir/red-42", "mini-bidir/random-42", "mini-bidir/val+red-43"
    ]  # fmt: skip
    assert len(list(study.cells())) == 12


def test_a_folder_is_named_safely():
    assert Cell("GAIR/ReasonEval-7B", "red", 42).name == "GAIR-ReasonEval-7B/red-42"
    assert Cell("../..", "red", 42).name == "evaluator/red-42"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": []}, "seeds is empty"),
        ({"seeds": [1, 1]}, "seeds has '1' twice"),
        ({"subsets": ["best"]}, "subsets is 'best', expected one of"),
        ({"match": 0}, "match is 0"),
        ({"settings": {"seed": 1}}, r"settings\.seed is what the study itself sets"),
        ({"settings": {"init": "x"}}, r"settings\.init is what the study itself sets"),
        ({"settings": {"epoch": 1}}, "unknown key epoch"),
        ({"start": None}, "there is no model to learn"),
        ({"engine": "none"}, "engine is 'none'"),
        ({"evaluators": ["a/b", "a b"]}, "evaluators has 'a-b' twice"),
    ],
)
def test_what_means_nothing_is_refused(tmp_path, changes, message):
    values = {key: value for key, value in (SMALL | changes).items() if value is not None}
    with pytest.raises(UserError, match=rf"study\.yaml: .*{message}"):
        read_study(write(tmp_path / "study.yaml", values))
