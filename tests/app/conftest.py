"""Two tiny evaluators, the folders they lie in, and what scores with them."""

import logging
import os
import shutil
import threading
import warnings
from types import SimpleNamespace

import gradio as gr
import pytest
from filelock import FileLock

from stepsight.app.commands.cli import main
from stepsight.app.evidence import page as evidence_page
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.scoring.gallery_seed import seed
from stepsight.app.web.logs import ACCESS
from stepsight.storage.database.store import open_store
from tests.app.client import asking
from tests.app.elements import outline
from tests.checkpoints import write_evaluator, write_math_shepherd, write_token_classifier
from tests.transcripts import same_outcome


@pytest.fixture(autouse=True, scope="session")
def pages_are_only_mounted():
    """Gradio builds a server where the layout ends and another where the queue is set, which nobody asks: ours
    mounts the demo, for which Gradio builds a third."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gr.blocks, "App", SimpleNamespace(create_app=lambda *_, **__: None))
        yield


@pytest.fixture(autouse=True, scope="session")
def evidence_is_waited_for():
    """However busy the machine is, what a page shows is there when it is asked for; that it may come later has
    tests of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence_page, "_PATIENCE", 60.0)
        yield


@pytest.fixture(autouse=True)
def logs_are_as_before():
    """A command that serves sets up the logs of its process, to the output that pytest has for this test alone."""
    loggers = [logging.getLogger(name) for name in (None, "stepsight", ACCESS.name)]
    handlers, levels = loggers[0].handlers[:], [logger.level for logger in loggers]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warnings, "showwarning", warnings.showwarning)
        patch.setattr(threading, "excepthook", threading.excepthook)
        yield
    loggers[0].handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """A bidirectional evaluator that reads 1,024 tokens, about one per letter."""
    return write_evaluator(tmp_path_factory.mktemp("evaluators") / "tiny", max_position_embeddings=1024)


@pytest.fixture(scope="session")
def tiny_causal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluators") / "tiny-causal"
    return write_evaluator(folder, max_position_embeddings=1024, is_causal=True)


@pytest.fixture(scope="session")
def evaluators(tiny, tiny_causal):
    return Evaluators([tiny_causal, tiny], shipped=False)


@pytest.fixture(scope="session")
def mixed(tiny, tmp_path_factory):
    """`tiny` gives neg, neu and pos, `math-shepherd` and the bidirectional `two` give validity only."""
    folder = tmp_path_factory.mktemp("evaluators")
    write_math_shepherd(folder / "math-shepherd", card={"format": "math-shepherd"}, max_position_embeddings=1024)
    write_token_classifier(folder / "two", "modernbert", max_position_embeddings=1024)
    return Evaluators([tiny, folder / "math-shepherd", folder / "two"], shipped=False)


@pytest.fixture(scope="session")
def seeded_file(tmp_path_factory):
    """The file of a store as the application's first start leaves it, to be copied: made once, by the worker that
    comes first."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    path, unfinished = folder / "seeded.db", folder / "seeding.db"
    with FileLock(folder / "seeded.lock"):
        if not path.exists():
            shipped = Evaluators()
            with open_store(str(unfinished)) as store:
                seed(store, shipped, shipped.names)
            unfinished.rename(path)
    return path


@pytest.fixture(scope="module")
def module_store(sqlite_template, tmp_path_factory):
    """A store that the tests of a module share."""
    with open_store(str(shutil.copy(sqlite_template, tmp_path_factory.mktemp("module") / "store.db"))) as store:
        yield store


@pytest.fixture
def client(sqlite_store, evaluators):
    """The whole application on the store of the test, asked over HTTP."""
    with asking(sqlite_store, evaluators) as client:
        yield client


@pytest.fixture
def command(capsys):
    """Runs a command line in this process; gives its exit code, standard output and standard error."""

    def run(*argv: object) -> tuple[int, str, str]:
        try:
            code = main([str(part) for part in argv])
        except SystemExit as end:
            code = int(end.code or 0)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def drawn():
    """`drawn(html, title)` compares the outline of a piece of a page."""
    return lambda html, title="": same_outcome(f"== {title}\n{outline(html)}")
