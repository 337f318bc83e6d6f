"""What the server and its worker have imported once the first page is there: nothing that takes seconds."""

import subprocess
import sys

import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.location import shipped_summaries
from tests.conftest import ROOT

HEAVY = (
    "torch", "transformers", "gradio", "scipy", "sklearn", "pandas", "pyarrow", "safetensors",
    "plotly.basedatatypes", "narwhals", "PIL", "huggingface_hub.hf_api",
)  # fmt: skip
FIRST_PAGE = """
from fastapi.testclient import TestClient
from stepsight.app.commands import serve
from stepsight.app.scoring.gallery_seed import open_evaluators
from stepsight.app.server import build_app
from stepsight.storage.database.store import open_store
with open_store({store!r}) as store:
    application = build_app(store, open_evaluators(store, [], None, 1_000_000))
    page = TestClient(application, base_url="http://127.0.0.1", client=("127.0.0.1", 1)).get("/")
    assert page.status_code == 200 and "mini-causal" in page.text
"""


@pytest.mark.parametrize("code", [FIRST_PAGE, "import stepsight.app.jobs.worker"], ids=["server", "worker"])
def test_nothing_heavy_is_imported_at_the_start(code, seeded_file):
    shown = f"import sys; print(*(name for name in {HEAVY} if name in sys.modules))"
    source = f"{code.format(store=str(seeded_file))}\n{shown}"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == []


def test_the_recorded_summaries_are_those_of_the_shipped_evaluators():
    """If they differ, write what the evaluators say of themselves into assets/evaluators/summaries.json."""
    assert [load_evaluator(one.name).description() for one in shipped_summaries()] == list(shipped_summaries())
