import json
import shlex
import subprocess

import pytest
import torch

from stepsight.app.score.result import ADDRESS, curl_lines, python_snippet
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import Thresholds, judge_solution
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.app.elements import INJECTIONS
from tests.forked import Forked

WILD = Trace.of(
    "What's \"$2 + 3$\"?\n'''\\", ["It is 5.\\n", ["{value}", "$(touch x) `id` !! %s"], *INJECTIONS, "é 数 \u202e"]
)


@pytest.mark.slow
def test_the_program_runs_and_prints_what_the_page_shows(evaluators, tiny, tiny_causal, tmp_path):
    trace = Trace.of('What\'s "2 + 3"?', ["2 + 3 = 5.\n'''", ["So {it}", "is \\5 é."]])
    thresholds = Thresholds(0.45, 0.15)
    specs = {name: evaluators.spec(name) for name in ("tiny", "tiny-causal")}
    assert specs == {"tiny": str(tiny), "tiny-causal": str(tiny_causal)}
    program = python_snippet(trace, specs, thresholds)
    with Forked(program, []) as run:
        printed, complaints = run.communicate()
    assert run.returncode == 0, complaints
    expected = []
    for name in specs:
        hindsight = evaluators.judge(name, trace).hindsight
        for mode, scores in (("online", hindsight.online), ("offline", hindsight.offline)):
            verdict = "valid" if judge_solution(scores, thresholds).valid else "not valid"
            expected.append(" ".join([name, mode, *(f"{value:.4f}" for value in scores.validity), verdict]))
    assert printed.splitlines() == expected


def test_the_program_holds_every_text_as_it_is():
    program = python_snippet(WILD, {"it's": "a\\b"}, Thresholds())
    before_evaluators = program.split("thresholds = ")[0].replace("from stepsight", "# from stepsight")
    found = {"Trace": Trace}
    exec(before_evaluators, found)  # only literals and Trace.of are left
    assert found["trace"] == WILD
    assert found["evaluators"] == {"it's": "a\\b"}


def test_a_request_per_evaluator_with_the_body_of_the_api():
    lines = curl_lines(WILD, ["tiny", "it's"])
    assert len(lines) == 2
    for line, name in zip(lines, ["tiny", "it's"], strict=True):
        assert "\n" not in line
        words = shlex.split(line)
        assert words[:3] == ["curl", "-s", f"{ADDRESS}/api/v1/score"]
        body = json.loads(words[words.index("-d") + 1])
        assert (body["problem"], body["evaluator"], body["mode"]) == (WILD.problem, name, "hindsight")
        assert Trace.of(body["problem"], body["steps"]) == WILD


def test_a_shell_gives_the_body_unchanged():
    (line,) = curl_lines(WILD, ["tiny"])
    printed = subprocess.run(
        ["sh", "-c", line.replace("curl -s", "printf '%s\\n'", 1)], capture_output=True, text=True, check=True
    ).stdout
    assert Trace.of("q", json.loads(printed.splitlines()[-1])["steps"]).steps == WILD.steps


@pytest.mark.parametrize("value", [0.5, 0.15, 1, 0])
def test_the_thresholds_stand_in_the_program_as_numbers(value):
    program = python_snippet(WILD, {}, Thresholds(value, 0.2))
    assert f"Thresholds(validity={value!r}, redundancy=0.2)" in program


def test_the_type_of_the_weights_stands_in_the_program(tiny, capsys):
    """Where one of them is not float32; run here, since the program above is run by itself."""
    trace, specs = Trace.of("What is 2 + 3?", ["It is 5."]), {"tiny": str(tiny), "tiny (bfloat16)": str(tiny)}
    exec(python_snippet(trace, specs, Thresholds(), {"tiny (bfloat16)": "bfloat16"}), {})
    printed = capsys.readouterr().out.splitlines()
    assert [line.rpartition(" o")[0] for line in printed] == ["tiny"] * 2 + ["tiny (bfloat16)"] * 2
    for dtype, line in zip((torch.float32, torch.bfloat16), printed[::2], strict=True):
        evaluator = load_evaluator(tiny, dtype=dtype)
        assert line.startswith(f"{evaluator.name} ")
        online = Scorer(evaluator).score_one(trace).hindsight.online
        assert f" online {online.validity[0]:.4f} " in line
    assert "dtype" not in python_snippet(trace, specs, Thresholds())
