"""A model hub on this machine, asked by the hub's own client."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file

from stepsight.core.errors import UserError
from stepsight.core.formats.loading import load_evaluator
from stepsight.core.models.location import cached, can_load, download, is_hub_id
from tests.checkpoints import QWEN2, write_adapter, write_language_model, write_pqm, write_reasoneval
from tests.core.formats.test_two_token import tokenizer_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODEL = "GAIR/ReasonEval-7B"


@contextmanager
def hub(folder, model=MODEL, **others):
    """Serves a folder as `model`, `others` by their ids with __ for /, and knows no other; yields its address and
    the paths that were asked for."""
    asked = []
    folders = {model: folder} | {name.replace("__", "/"): path for name, path in others.items()}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            path = self.path.split("?")[0]
            found = next((one for one in folders if f"/{one}/" in path), None)
            folder = folders.get(found)
            files = (
                sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) if folder else []
            )
            if folder and path.startswith(f"/api/models/{found}/revision/"):
                self.answer(json.dumps({"id": found, "sha": COMMIT, "siblings": []}).encode())
            elif folder and path == f"/api/models/{found}/tree/{COMMIT}":
                tree = [
                    {"type": "file", "path": name, "size": (folder / name).stat().st_size, "oid": f"{i:040x}"}
                    for i, name in enumerate(files)
                ]
                self.answer(json.dumps(tree).encode())
            elif (
                folder
                and path.startswith(f"/{found}/resolve/{COMMIT}/")
                and (name := path.split(COMMIT + "/")[1]) in files
            ):
                self.answer((folder / name).read_bytes(), etag=f"{files.index(name):040x}")
            else:
                missing = {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
                self.answer(b"{}", status=404, **missing)

        do_HEAD = do_GET  # noqa: N815

        def answer(self, body, status=200, etag="", **headers):
            self.send_response(status)
            headers |= {"X-Repo-Commit": COMMIT, "ETag": f'"{etag}"', "Content-Length": str(len(body))}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def at(monkeypatch, tmp_path):
    """Sends the client to an address, with a cache of its own."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def go(address):
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
        template = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)

    return go


@pytest.fixture
def published(tmp_path):
    folder = tmp_path / "published"
    write_reasoneval(folder)
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    (folder / "modeling.py").write_text("raise SystemExit")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "config.json").write_text("{}")
    return folder


def test_an_evaluator_is_fetched_once_and_then_needs_no_hub(at, published, monkeypatch):
    with hub(published) as (address, asked):
        at(address)
        assert not can_load(MODEL)
        evaluator = load_evaluator(MODEL)
        assert (evaluator.name, evaluator.format) == ("ReasonEval-7B", "reasoneval")
        assert evaluator.fingerprint == load_evaluator(published).fingerprint
        assert any(path.endswith("model.safetensors") for path in asked)
        assert not any("pytorch_model" in path or "modeling" in path or "onnx" in path for path in asked)
    assert can_load(MODEL)
    folder = cached(MODEL)
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"
    ]  # fmt: skip
    # The server is gone: what was fetched is used.
    assert load_evaluator(MODEL).fingerprint == evaluator.fingerprint
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert load_evaluator(MODEL).fingerprint == evaluator.fingerprint
    # A folder of the cache is known by the model's name.
    assert load_evaluator(folder).name == "ReasonEval-7B"


def test_a_model_that_the_hub_does_not_know_is_named(at, published):
    with hub(published) as (address, _):
        at(address)
        with pytest.raises(UserError, match=r"no folder 'GAIR/ReasonEval-8B', and the model hub has no such model"):
            download("GAIR/ReasonEval-8B")


def test_pickles_are_fetched_where_there_is_nothing_else(at, published):
    tensors = load_file(published / "model.safetensors")
    (published / "model.safetensors").unlink()
    torch.save(tensors, published / "pytorch_model.bin")
    with hub(published) as (address, asked):
        at(address)
        evaluator = load_evaluator(MODEL)
        assert (evaluator.name, evaluator.format) == ("ReasonEval-7B", "reasoneval")
        assert not any("modeling" in path for path in asked)
    assert can_load(MODEL)
    save_file(tensors, published / "model.safetensors", {"format": "pt"})
    assert evaluator.fingerprint == load_evaluator(published).fingerprint


def test_a_model_without_weights_is_refused(at, published):
    (published / "model.safetensors").unlink()
    (published / "pytorch_model.bin").unlink()
    with hub(published) as (address, _):
        at(address)
        with pytest.raises(UserError, match=r"'GAIR/ReasonEval-7B' has no weights on the model hub"):
            load_evaluator(MODEL)
    assert not can_load(MODEL)


def test_weights_in_a_folder_below_get_config_and_tokenizer_of_their_base(at, tmp_path):
    base = tmp_path / "base"
    write_pqm(tmp_path / "PQM", base)
    (tmp_path / "PQM" / "zeta-4").mkdir()
    (tmp_path / "PQM" / "zeta-4" / "model.safetensors").write_bytes(b"another")
    (base / "model.safetensors").write_bytes(b"not needed")
    (tmp_path / "PQM" / "stepsight.json").write_text(json.dumps({"base": str(base)}))
    expected = load_evaluator(tmp_path / "PQM").fingerprint
    (tmp_path / "PQM" / "stepsight.json").unlink()
    others = {"deepseek-ai__deepseek-math-7b-base": base}
    with hub(tmp_path / "PQM", "Windy0822/PQM", **others) as (address, asked):
        at(address)
        evaluator = load_evaluator("Windy0822/PQM")
        assert (evaluator.name, evaluator.format, evaluator.fingerprint) == ("PQM", "value-head", expected)
        assert [path for path in asked if path.endswith("safetensors") and "resolve" in path] != []
        assert not any("zeta-4/" in path or ("base/resolve" in path and "safetensors" in path) for path in asked)
    assert can_load("Windy0822/PQM")
    assert load_evaluator("Windy0822/PQM").fingerprint == expected


def test_an_adapter_gets_its_base_at_the_revision_that_it_names(at, tmp_path):
    base = tmp_path / "base"
    write_language_model(base, QWEN2, tokenizer_of(QWEN2))
    tensors = load_file(base / "model.safetensors")
    folder = tmp_path / "prm"
    write_adapter(folder, "Qwen/base", tensors, revision="0123abc")
    card = {"format": "two-token", "tokens": {"right": " +", "wrong": " -"}}
    template = {"prompt": "{problem} ", "separator": " ки"}
    (folder / "stepsight.json").write_text(json.dumps(card | {"template": template}))
    with hub(folder, "someone/prm", Qwen__base=base) as (address, asked):
        at(address)
        evaluator = load_evaluator("someone/prm")
        assert (evaluator.name, evaluator.format) == ("prm", "two-token")
        assert any("/api/models/Qwen/base/revision/0123abc" in path for path in asked)
    with hub(folder, "someone/prm") as (address, _):
        at(address)
        write_adapter(folder, "Qwen/other", tensors)
        with pytest.raises(
            UserError, match=r"its base model, 'Qwen/other', is not there: .*has no such model|log in"
        ):
            load_evaluator(folder)


def test_out_of_reach_says_what_was_tried(at, monkeypatch):
    at("http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"no folder 'a/b', and no model 'a/b' in the cache .* cannot be reached"):
        download("a/b")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=r"cannot be reached from here\. Give a folder, or copy"):
        load_evaluator("a/b")
    assert cached("a/b") is None


def test_what_is_no_id_is_refused(at):
    at("http://127.0.0.1:9")
    with pytest.raises(UserError, match=r"no folder 'a/b--c', and it is no model's id"):
        download("a/b--c")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("GAIR/ReasonEval-7B", True),
        ("mini-bidir", False),
        ("/work/model", False),
        ("./a/b", False),
        ("a/b/c", False),
        ("../b", False),
        ("a/", False),
    ],
)
def test_ids_are_told_from_paths(spec, expected):
    assert is_hub_id(spec) == expected
