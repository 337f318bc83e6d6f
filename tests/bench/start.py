"""What `stepsight app` takes until its first page, and what it holds when nobody is there.

    python -m tests.bench.start

A start with a new store, then starts with the store that it left: the processor seconds of the server and its
worker until `GET /` is answered, and the megabytes that each holds `IDLE` seconds later, with pages of memory that
processes share divided among them.
"""

import http.client
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.app.processes import family
from tests.app.test_stopping import processor_seconds
from tests.conftest import ROOT

STARTS = 3
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


def main():
    """Measure and print."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 7960
    with tempfile.TemporaryDirectory() as folder:
        for number in range(STARTS):
            taken, held = measure(Path(folder) / "store.db", port)
            kind = "a new store" if number == 0 else "an earlier store"
            shown = " + ".join(f"{one:.0f}" for one in held)
            print(f"start with {kind}: first page after {taken:.1f} processor seconds; idle {shown} MB", flush=True)


if __name__ == "__main__":
    main()
