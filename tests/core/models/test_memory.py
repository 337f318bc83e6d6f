"""The memory of this machine, and the share an evaluator takes."""

import os
import platform
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
