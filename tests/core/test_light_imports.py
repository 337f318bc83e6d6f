"""Modules that need no PyTorch import none: a command that only lists datasets would wait seconds for it."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT

HEAVY = ("torch", "transformers", "sklearn", "scipy", "pandas")
# They compute with SciPy, whose import takes nearly as long as PyTorch's; scikit-learn draws curves, and `doubtful`
# fits a regression with it.
WITH_STATISTICS = ("agreement", "binary", "evidence", "figures", "ternary")
METRICS = {
    ".".join(path.relative_to(ROOT / "core" / "metrics").with_suffix("").parts)
    for path in (ROOT / "core" / "metrics").rglob("*.py")
    if path.stem != "__init__"
}


def loaded(modules):
    """The heavy packages that a fresh interpreter has loaded after importing these modules of core."""
    names = ", ".join(f"stepsight.core.{module}" for module in sorted(modules))
    code = f"import sys, {names}; print(*(name for name in {HEAVY} if name in sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(result.stdout.split())


@pytest.mark.parametrize(
    ("modules", "allowed"),
    [
        ({path.stem for path in (ROOT / "core").glob("*.py")} - {"__init__"}, set()),
        ({f"metrics.{name}" for name in METRICS - {*WITH_STATISTICS, "doubtful"}}, set()),
        ({f"metrics.{name}" for name in WITH_STATISTICS}, {"scipy", "pandas"}),
        (
            {
                *(
                    f"{room}.{path.stem}"
                    for room in ("files", "hubs")
                    for path in (ROOT / "core" / room).glob("*.py")
                    if path.stem != "__init__"
                ),
                "models.location",
                "models.memory",
                "models.placement",
                "prompts.template",
                "prompts.encoding",
                "scoring.client",
            },
            set(),
        ),
    ],
    ids=["root", "metrics", "statistics", "placement"],
)
def test_light_modules_load_nothing_heavy(modules, allowed):
    assert loaded(modules) <= allowed
