"""Command lines that are refused: what each says, on one store and one folder of files, which stay as they were."""

import io
import json
import re
import shlex

import pytest
import yaml

from stepsight.app.commands.cli import main
from stepsight.core.paths import asset
from stepsight.storage.database.store import open_store
from stepsight.storage.labelling.campaigns import list_campaigns
from stepsight.storage.traces.queries import list_datasets
from tests.cases import each
from tests.conftest import ROOT
from tests.storage.labelling.samples import campaign
from tests.storage.samples import add, evaluator, plain_row, write_lines
from tests.training.experiments.grid.toy import write_toy
from tests.training.experiments.reranking.samples import ROWS as CANDIDATES
from tests.training.hand import say, traces

SFT = ROOT / "training/configs/mistral-7b-sft.yaml"
MINI = ROOT / "training/configs/mini-bidir.yaml"

# What a parser refuses, after its usage.
USAGE = {
    "": "the following arguments are required: COMMAND",
    "sing": "invalid choice: 'sing'",
    "score --mode sideways": "invalid choice: 'sideways'",
    "score --input t.jsonl --validity -0.1": "argument --validity: '-0.1' found, expected a number from 0 to 1",
    "score --input t.jsonl --validity half": "argument --validity: 'half' found, expected a number from 0 to 1",
    "score --input t.jsonl --validity nan": "argument --validity: 'nan' found, expected a number from 0 to 1",
    "score --device gpu": "'gpu' found, expected cpu, cuda, cuda:N or auto",
    "score --dtype float64": "invalid choice: 'float64'",
    "score --device-map everywhere": "'everywhere' found, expected auto, balanced, balanced_low_0, sequential",
    """score --device-map '{"": "auto"}'""": "a device for each module",
    """score --device-map '{"": -1}'""": "a device for each module",
    "score --device-map {}": "a device for each module",
    "score --device cpu --device-map auto": "not allowed with argument",
    "import jsonl": "give the path of the file, or --download.",
    "import labels": "give the path of the file, or --download.",
    "import plain x --download --sha256 12": "'12' found, expected 64 hexadecimal digits",
    "synth --size 0": "argument --size: '0' found, expected a whole number above 0",
    "agreement first --draws 0": "argument --draws: '0' found, expected a whole number above 0",
    "evaluators verify lab/tiny --limit 0": "argument --limit: '0' found, expected a whole number above 0",
    "filter t.jsonl --output out --match 0": "'0' found, expected a whole number above 0",
    "filter t.jsonl --output out --match val": "'val' found, expected a whole number above 0",
    "filter t.jsonl --output out --by both": "invalid choice: 'both'",
    f"train {MINI} --plan --devices 0": "argument --devices: '0' found, expected a whole number above 0",
    "grid toy.yaml --jobs 0": "argument --jobs: '0' found, expected a whole number above 0",
    "app --proxy nginx": "'nginx' found, expected an address",
    "app --request-tokens 0": "'0' found, expected a whole number above 0",
    "app --request-seconds long": "'long' found, expected a number above 0",
    "user": "the following arguments are required: ACTION",
    "user add ada --role boss": "invalid choice: 'boss'",
    "user add ada": "the following arguments are required: --role",
}

# What a command refuses, in one line.
REFUSED = {
    "user add ada --role admin --password \udcff-letters": r"no option or argument --password \udcff-letters.",
    "score": "give either --dataset or --input",
    "score --dataset sums --input t.jsonl": "give either --dataset or --input",
    "score --dataset sums --validity 0.4": "--output, --validity and --redundancy require --input",
    "score --input none.jsonl": "none.jsonl: cannot be read (No such file",
    "score --input t.jsonl --evaluator nobody": "there is no evaluator 'nobody'. Give a folder",
    f"score --input t.jsonl --evaluator {'x' * 300}": f"there is no evaluator '{'x' * 60}…' (300 characters).",
    "score --input t.jsonl --evaluator empty": "model.safetensors is missing. An evaluator needs its safetensors",
    "score --input t.jsonl --device cuda:77": "the device 'cuda:77' is not available: ",
    """score --input t.jsonl --device-map '{"": 77}'""": "the device 'cuda:77' is not available",
    """score --input t.jsonl --device-map '{"norm": "cpu"}'""": "mini-bidir: the device map does not fit",
    "score --input t.jsonl --samples 3": "--critic, --samples and --temperature require a critic.",
    "score --input t.jsonl --evaluator critic:http://127.0.0.1:9/v1": "the model name is missing",
    "score --input t.jsonl --evaluator critic:http://127.0.0.1:9/v1#m,samples=none": "samples is 'none'",
    "score --input t.jsonl --reading both-orders": "mini-bidir cannot be read in both orders: it is bidirect",
    "score --input t.jsonl --window 5000": "mini-bidir cannot be read in windows of 5000 tokens: it reads at most",
    "evaluate --dataset nothing": "There is no dataset 'nothing'. The store holds other, sums.",
    "evaluate --dataset sums --evaluator baseline:luck": "there is no baseline 'baseline:luck'.",
    "evaluate --dataset sums --group POT": "sums has no group 'POT'. It has none.",
    "evaluate --dataset sums --compare first idle": "'first' and 'idle' have no judgments of sums",
    "evaluate --dataset sums --compare first baseline:substep-length": "No step of sums has several sub-steps, so"
    " baseline:substep-length equals its counterpart for steps",
    "evaluate --dataset sums --patch braces.json": "this is not a label patch",
    "evaluate --dataset sums --patch braces.json --random-cut 1": "--random-cut and --patch cannot be used",
    "evaluate --dataset sums --by steps --json": "--by cannot be used with --json",
    "evaluate --dataset sums --random-cut -1": "--random-cut is -1, expected 0 or more.",
    "calibrate --dataset nothing --evaluator first": "There is no dataset 'nothing'.",
    "calibrate --dataset sums --evaluator baseline:length": "baseline:length is a baseline",
    "calibrate --dataset sums --evaluator first --mode online": "first on sums, online: there are no judgments.",
    "calibrate --dataset sums --evaluator first --recall 0.5": "--recall requires the goal recall.",
    "calibrate --dataset sums --evaluator first --goal recall --recall 0": "--recall is 0, expected more than 0",
    "doubtful --dataset other": "other has no gold labels to doubt.",
    "stress": "give either --dataset or --input. See stepsight stress --help.",
    "stress --input words.jsonl": "no transform finds anything to change in these traces. Most of them need",
    "report --output out": "--dataset is missing. See stepsight report --help.",
    "report --dataset sums": "--output is missing.",
    "report --dataset nowhere --output out": "There is no dataset 'nowhere'. The store holds other, sums.",
    "report --dataset sums --output out --evaluator nobody": "'nobody' has no judgments of sums.",
    "report --dataset sums --output out --stress braces.json": "not a stress test's result",
    "report grid nowhere": "nowhere: there is no nowhere with the results of a grid.",
    "report filtering nowhere": "nowhere: there is no math500.json in it.",
    "rerank bad.jsonl --output out": "bad.jsonl line 2: the column 'solution' is missing",
    "rerank --dataset other --output out --method majority": "other: no candidate has an answer, and",
    "rerank --output out": "no candidates to choose from",
    "rerank t.jsonl --output t.jsonl": "the candidates and the choices cannot be in the same file",
    "rerank --dataset other --output out": "no evaluator has scored the steps of other",
    "import prm t.jsonl": "There is no kind 'prm'. The kinds are mr-math-invalid, ",
    "import stepwise --download": "No public address of stepwise is known",
    "import jsonl none.jsonl": "none.jsonl: cannot be read",
    "import jsonl bytes.jsonl": "bytes.jsonl line 1: byte 9 is not UTF-8",
    "import auto t.jsonl --dataset x": "cannot be used with auto",
    "import auto folder": "no file to import. Expected files that end in .parquet, .arrow, .jsonl",
    "import jsonl t.jsonl --scores": "--scores requires --download",
    "import prm800k phase1_test.jsonl --download --scores": "No scores are published for phase1_test",
    "import jsonl t.jsonl --sha256 " + "0" * 64: "--sha256 requires --download",
    "import jsonl t.jsonl --skipped list.jsonl": "--skipped requires --skip-bad",
    "import jsonl t.jsonl --fields problem=a": "--fields requires any",
    "import columns t.jsonl": "columns needs --fields",
    "import labels t.jsonl --where a=b": "--where is only for one file of traces",
    "import jsonl t.jsonl --continued": "--continued requires prm800k",
    "import jsonl t.jsonl --part train": "--split, --part and --revision require any",
    "import any t.jsonl --fields problem=a,steps=b --revision v1": "--revision requires a dataset on",
    "import labels x.jsonl --skip-bad": "cannot be downloaded, nor imported in part",
    "import jsonl x.jsonl --campaign a": "--campaign and --annotator require labels",
    "import-scores none short.json --evaluator PRM": "no dataset 'none'",
    "import-scores sums short.json": "does not name its evaluator. Name it (--evaluator)",
    "synth --families poetry": "families: poetry found, expected some of shopping",
    "synth --size 2 --output none/out.jsonl": "none/out.jsonl: cannot be written (",
    "synth --size 2 --output folder": "folder: cannot be written (",
    f"synth --size 2 --output {'x' * 300}.jsonl": ": cannot be written (",
    f"backup {'x' * 300}.db": "x.db cannot be used (",
    "agreement nowhere": "nowhere",
    "agreement first --against nowhere": "nowhere",
    "agreement first --against first": "'first' is compared with itself. Name another campaign.",
    "campaign show second": "There is no campaign 'second'",
    "campaign create a sums --guideline bytes.jsonl": "is not UTF-8 text",
    "campaign create a sums --guideline nowhere.md": "nowhere.md: cannot be read",
    "campaign create a sums --guideline t.jsonl --meta source": "'source' found, expected a field, one of = ~",
    "campaign create a sums --guideline t.jsonl --evaluator nobody": "There is no evaluator 'nobody' in the store.",
    "campaign create a sums --guideline t.jsonl --suggest": "Labels can be suggested only where scores are shown",
    "campaign create a sums --guideline t.jsonl --annotator nobody": "There is no user 'nobody'",
    "patch export sums fixes.json": "No dispute of sums is accepted. See the page Disputes.",
    "patch show braces.json": "this is not a label patch",
    "datasets delete other": "other: 1 trace will be deleted. Add --yes to continue.",
    "user add ada --role admin": "There is no terminal to ask for the password on.",
    "user add ada --role admin --password-stdin": "has 0 characters, expected at least 10",
    "user role nobody admin": "There is no user 'nobody'",
    "user key nobody": "There is no user 'nobody'",
    "user deactivate nobody": "There is no user 'nobody'",
    "app --host 0.0.0.0": "--host is '0.0.0.0': other machines could change what is stored",
    "app --port 65536": "--port is 65536, expected 0 to 65535.",
    "app --device cuda": "--device, --device-map and --dtype are for evaluators given with --evaluator.",
    "train none.yaml": "none.yaml: cannot be read",
    "train unknown.yaml": "unknown.yaml: unknown key epoch. Did you mean epochs",
    "train missing.yaml --output out": "there is no file none.jsonl in ",
    f"train {MINI} --gpu 141": "--gpu and --devices require --plan.",
    "grid toy.yaml --size huge": "--size is 'huge', expected one of tiny.",
    "grid toy.yaml --seed 1": "--seed is '1', expected one of 13.",
    "grid toy.yaml --gpu 141": "--gpu requires --plan.",
    "filter --output out": "no pool to choose from. Name a file of solutions, or a dataset with --dataset.",
    "filter none.jsonl --output out": "none.jsonl: cannot be read",
    "filter --dataset nothing --output out": "There is no dataset 'nothing'.",
    f"sft {SFT} --gpu 141": "--gpu and --devices require --plan.",
    f"sft {SFT} --init nothing-here --data pairs.jsonl": "there is no folder",
    f"sft {SFT} --init mini-bidir --data pairs.jsonl": "mini-bidir: this is an",
    "sft none.yaml": "none.yaml: cannot be read",
    "math500 mini-bidir --output out --problems problems.jsonl": "mini-bidir: this is an",
    "filter-study none.yaml": "none.yaml: cannot be read",
}


def config(**changes):
    sources = {"sources": [{"kind": "synthetic", "size": 16}]}
    backbone = {"hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "context": 1024}
    values = {"attention": "bidirectional", "data": sources, "backbone": backbone, "vocabulary": 300}
    return yaml.safe_dump(values | changes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files of the command lines above, and the store, in which `first` has judged `sums`."""
    folder = tmp_path_factory.mktemp("refusals")
    with open_store(str(folder / "store.db")) as store:
        say(store, add(store, traces()), evaluator(store, "first").id)
        evaluator(store, "idle")
        campaign(store, None, name="first")
        other = write_lines(folder / "other.jsonl", [plain_row(1)])
        assert main(["import", "jsonl", str(other), "--dataset", "other", "--db", store.name]) == 0
    write_toy(folder).rename(folder / "toy.yaml")
    write_lines(folder / "t.jsonl", [plain_row(1)])
    write_lines(folder / "words.jsonl", [{"id": "a", "problem": "Why?", "steps": ["— 因为"]}])
    write_lines(folder / "bad.jsonl", [CANDIDATES[0], {"problem": "q"}])
    write_lines(folder / "short.json", [{"id": "A", "scores": [0.9]}])
    write_lines(folder / "pairs.jsonl", [{"query": "1 + 1?", "response": "2"}])
    (folder / "bytes.jsonl").write_bytes(b'{"id": "\xff"}')
    (folder / "braces.json").write_text("{}")
    (folder / "problems.jsonl").write_text(json.dumps({"problem": "1 + 1?", "answer": "2"}))
    (folder / "unknown.yaml").write_text(config(epoch=1))
    (folder / "missing.yaml").write_text(config(data={"sources": [{"kind": "jsonl", "path": "none.jsonl"}]}))
    (folder / "folder").mkdir()
    (folder / "mini-bidir").symlink_to(asset("evaluators", "mini-bidir"))
    (folder / "empty").mkdir()
    for file in asset("evaluators", "mini-bidir").iterdir():
        if file.suffix == ".json":
            (folder / "empty" / file.name).symlink_to(file)
    return folder


@pytest.fixture
def refuses(command, folder, monkeypatch):
    """Run a line in the folder, which has to end with exit code 2 and to change nothing; gives the error."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("STEPSIGHT_DB", str(folder / "store.db"))
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def state() -> object:
        with open_store(str(folder / "store.db")) as store:
            datasets, campaigns = list_datasets(store), list_campaigns(store)
        files = sorted(path.name for path in folder.rglob("*") if ".db-" not in path.name)
        return files, [(row.name, row.traces) for row in datasets], [row.name for row in campaigns]

    def refuses(line: str) -> str:
        before = state()
        code, out, err = command(*shlex.split(line))
        assert (code, out) == (2, "")
        assert "Traceback" not in err
        assert state() == before
        return err

    return refuses


@each("line, message", USAGE.items())
def test_a_line_that_cannot_be_parsed_is_explained(refuses, line, message):
    err = refuses(line)
    assert "usage: stepsight" in err
    assert message in err


@each("line, message", REFUSED.items())
def test_a_line_that_cannot_be_carried_out_says_why(refuses, line, message):
    err = refuses(line)
    # Others may have said what the command begins with.
    last = err.splitlines()[-1]
    assert last.startswith(f"stepsight {line.split()[0]}: ")
    assert message in last


@each(
    "address, message",
    [
        ("none/store.db", r"none/store\.db: the folder .*none does not exist\. Create it"),
        (".", "a folder, expected a file"),
        ("t.jsonl", r"t\.jsonl: (file is )?not a database\. Name a store"),
        ("mysql://x/y", "A store cannot be kept in 'mysql'"),
        ("postgresql://nobody@127.0.0.1:1/x", "1:1/x: .*Check the address, and that the server runs"),
    ],
)
def test_a_database_that_cannot_be_opened_is_named(refuses, address, message):
    for line in ("import jsonl t.jsonl", "datasets", "score --dataset sums"):
        assert re.search(message, refuses(f"{line} --db {address}"))


def test_the_options_for_one_process_are_refused_for_several(refuses, monkeypatch):
    for name, value in (("WORLD_SIZE", "2"), ("RANK", "1"), ("LOCAL_RANK", "1")):
        monkeypatch.setenv(name, value)
    assert "--input needs a single process, but several were launched." in refuses("score --input t.jsonl")
    several = "--device-map gives all GPUs to one process, but several were launched."
    assert several in refuses("score --dataset sums --device-map auto")
