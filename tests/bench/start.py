"""What commands take to start, and `stepsight app` until its first page, and what it holds when nobody is there.

    python -m tests.bench start

The seconds of short commands. Then a start with a new store and starts with the store that it left: the processor
seconds of the server and its worker until `GET /` is answered, and the megabytes that each holds `IDLE` seconds
later, with pages of memory that processes share divided among them.
"""

import http.client
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.app.processes import family
from tests.app.test_stopping import processor_seconds
from tests.bench.figures import Figure
from tests.conftest import ROOT

STARTS = 3
PORT = 7960
RUNS = 5
_SCORE = """from stepsight import Scorer, Trace, load_evaluator
Scorer(load_evaluator("mini-bidir")).score_one(Trace.of("What is 2 + 3?", ["2 + 3 = 5."]), "hindsight")"""
COMMANDS = (
    ("`stepsight --help`", 0.35, ["-m", "stepsight", "--help"]),
    ("`import stepsight`", 0.25, ["-c", "import stepsight"]),
    ("first score of a new process", 2.5, ["-c", _SCORE]),
)
"""What is run, the seconds that its median should stay within, and the arguments of Python."""
IDLE = 20


def measure(store, port):
    """Processor seconds until the first page, and the megabytes of each process when idle."""
    line = [sys.executable, "-m", "stepsight", "app", "--db", str(store), "--port", str(port)]
    with subprocess.Popen(line, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            while not _answers(port):
                assert process.poll() is None, "the server did not start"
                time.sleep(0.02)
            taken = processor_seconds(family(process.pid))
            time.sleep(IDLE)
            return taken, [_megabytes(pid) for pid in family(process.pid)]
        finally:
            process.terminate()


def _answers(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _megabytes(pid):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def figures():
    """Measure commands, then starts of the server."""
    for what, bound, line in COMMANDS:
        seconds = statistics.median(_seconds(line) for _ in range(RUNS))
        yield Figure(what, seconds, "s", bound)
    with tempfile.TemporaryDirectory() as folder:
        starts = [measure(Path(folder) / "store.db", PORT) for _ in range(STARTS)]
    first, *later = (seconds for seconds, _ in starts)
    yield Figure("first page of `stepsight app` with a new store, processor time", first, "s", 6)
    yield Figure("the same with the store that is there", statistics.median(later), "s", 3)
    idle = statistics.median(sum(held) for _, held in starts)
    yield Figure("idle memory of the server and its worker", idle, "MB", 300)


def _seconds(line):
    start = time.perf_counter()
    subprocess.run([sys.executable, *line], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start
