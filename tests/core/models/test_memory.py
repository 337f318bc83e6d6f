"""The memory of this machine, and the share an evaluator takes."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from stepsight.core.models import memory
from stepsight.core.models.memory import check_memory, free_memory, needed_memory, total_memory
from tests.messages import refused


def test_an_evaluator_takes_its_weights_a_share_and_some_more():
    # 7 billion parameters of 2 bytes, times 1.15, and 0.3 GB.
    assert needed_memory(7_000_000_000, "bfloat16") == 16_400_000_000
    assert needed_memory(7_000_000_000, "float32") == 32_500_000_000


def test_free_memory_is_a_part_of_the_whole():
    assert 10_000_000 < free_memory() <= total_memory()


def test_the_limit_of_a_container_counts_and_its_cached_files_are_free(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("50000000\n")
    assert total_memory() == 50_000_000
    (tmp_path / "memory.current").write_text("30000000\n")
    (tmp_path / "memory.stat").write_text("anon 20000000\nactive_file 1000000\ninactive_file 4000000\n")
    assert free_memory() == 25_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert total_memory() > 50_000_000


def test_too_little_memory_is_reported_with_both_sizes_and_a_hint(monkeypatch):
    monkeypatch.setattr(memory, "total_memory", lambda: 8_000_000_000)
    monkeypatch.setattr(memory, "free_memory", lambda: 2_000_000_000)
    check_memory("a", 2_000_000_000)
    with refused():
        check_memory("a", 3_000_000_000)
    check_memory("a", 3_000_000_000, whole=True)
    with refused():
        check_memory("a", 16_400_000_000, whole=True)
    # Where the system does not tell, nothing is refused.
    monkeypatch.setattr(memory, "total_memory", lambda: None)
    check_memory("a", 10**15, whole=True)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep nothing")
def test_freed_memory_is_returned():
    def held():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    blocks = [bytes(2000) for _ in range(50_000)]
    # The library gives back by itself what nothing in use lies above.
    above = bytes(2000)
    del blocks
    before = held()
    memory.release_memory()
    assert before - held() > 50_000_000
    assert above


ARRAYS = """
import os, sys
import numpy as np
from pathlib import Path
from stepsight.core.models.memory import return_freed_memory

def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

if sys.argv[1] == "mapped":
    return_freed_memory()
# What is freed raises the limit under which the library keeps arrays among small objects.
np.ones(2**22)
before, small = held(), []
for _ in range(4):
    arrays = []
    for _ in range(40):
        arrays.append(np.ones(5 * 2**17))
        small.append(bytes(3000))
    del arrays
print(held() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such option")
def test_large_arrays_leave_no_holes_among_small_objects():
    def left(how):
        return int(subprocess.check_output([sys.executable, "-c", ARRAYS, how], text=True))

    assert left("mapped") < 10_000_000 < 100_000_000 < left("kept")


THREADS = """
import ctypes, sys, threading
from stepsight.core.models.memory import return_freed_memory

if sys.argv[1] == "shared":
    return_freed_memory()
together = threading.Barrier(9)

def work():
    held = bytes(5000)
    together.wait()
    together.wait()
    assert held

for _ in range(8):
    threading.Thread(target=work).start()
together.wait()
library = ctypes.CDLL(None)
library.malloc_info(0, ctypes.c_void_p.in_dll(library, "stdout"))
library.fflush(None)
together.wait()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such heaps")
def test_threads_share_two_heaps():
    def heaps(how):
        return subprocess.check_output([sys.executable, "-c", THREADS, how], text=True).count("<heap nr=")

    assert heaps("shared") == 2 < heaps("their own")


PRODUCTS = """
import resource, sys
import numpy as np
from stepsight.core.models.memory import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()

def products():
    for _ in range(50):
        arrays = [np.ones(3 * 2**17) for _ in range(4)]
        del arrays

products()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
products()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such option")
def test_kept_memory_is_used_again():
    def faults(how):
        return int(subprocess.check_output([sys.executable, "-c", PRODUCTS, how], text=True))

    # Four arrays of 768 pages, 50 times.
    assert faults("kept") < 1_000 < 50_000 < faults("given back")
