"""The memory of this machine, and how much of it an evaluator needs. Does not need PyTorch."""

import ctypes
import os
import sys
from pathlib import Path

from stepsight.core.errors import UserError
from stepsight.core.files.child import Bounds
from stepsight.core.hubs.hub_cache import HubModel
from stepsight.core.paths import format_bytes

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# Memory needed in addition to the weights, for activations and for temporary copies made by a loader.
_SHARE, _OVERHEAD = 1.15, 300_000_000
# A child may take this much memory besides the weights, plus this many times their bytes: they are mapped,
# converted to another type, and copied by a loader. Reading and hashing this many bytes takes at most a second.
_OPENING, _COPIES, _SECONDS, _SPEED = 2_000_000_000, 5, 60, 50_000_000
_GROUP = Path("/sys/fs/cgroup")


def needed_memory(parameters: int, dtype: str) -> int:
    """Estimate how many bytes an evaluator takes while scoring from its parameter count and data type."""
    return round(_SHARE * parameters * _BYTES.get(dtype, 4)) + _OVERHEAD


def opening_bounds(size: int) -> Bounds:
    """Return the limits for a child that opens or assembles an untrusted evaluator of `size` bytes."""
    seconds = _SECONDS + size // _SPEED
    return Bounds(seconds, _OPENING + _COPIES * size, patience=60 + 3 * seconds)


def total_memory() -> int | None:
    """Return the maximum memory of this process in bytes, or None if the system does not report it."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    limit = _number(_GROUP / "memory.max")
    return whole if limit is None else min(whole, limit)


def free_memory() -> int | None:
    """Return the number of bytes currently available to this process, or None if the system does not report it. The
    system's file cache counts as free."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return total_memory()
    limit, used = _number(_GROUP / "memory.max"), _number(_GROUP / "memory.current")
    if limit is None or used is None:
        return free
    return min(free, max(0, limit - used + _file_cache_bytes()))


def release_memory() -> None:
    """Make the C library return all freed memory that it keeps to the system. A long solution leaves 200 MB behind
    that shorter ones do not need."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    trim = getattr(library, "malloc_trim", None)
    if trim is not None:
        trim(0)


def memory_of(fetched: HubModel, dtype: str) -> int:
    """Estimate how many bytes a downloaded evaluator needs for scoring in the type `dtype`, including the models it
    depends on. No file is read: if its weights were never counted, they are estimated from the sizes of its
    files."""
    return needed_memory(fetched.weights.count if fetched.weights else fetched.parameters, dtype)


def count_weights(fetched: HubModel, dtype: str) -> int:
    """Estimate the number of weights of a downloaded evaluator and of the models it depends on, from the sizes of
    their files and the type in which they are stored."""
    # A type not listed here may have one byte.
    return sum(model.own_size // _BYTES.get(dtype, 1) for model in (fetched, *fetched.parts.values()))


def has_room(needed: int) -> bool:
    """True if `needed` bytes are free, or if the amount of free memory is unknown."""
    free = free_memory()
    return free is None or needed <= free


def check_memory(name: str, needed: int, *, whole: bool = False) -> None:
    """Raise `UserError` if fewer than `needed` bytes are free or, if `whole` is True, if the machine has less
    memory in total. `name` names the evaluator in the message."""
    available = total_memory() if whole else free_memory()
    if available is None or needed <= available:
        return
    state = f"this machine has {format_bytes(available)}" if whole else f"{format_bytes(available)} is free"
    raise UserError(
        f"{name} needs about {format_bytes(needed)} of memory; {state}.",
        "Choose a smaller one, weights in bfloat16 (--dtype), or a machine with more memory."
        if whole
        else "Close other programs, or wait for them to finish, then try again.",
    )


def _file_cache_bytes() -> int:
    """Return how many bytes of the control group's memory hold cached files, which can be reclaimed."""
    try:
        lines = (_GROUP / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    fields = (line.split() for line in lines if line.startswith(("inactive_file ", "active_file ")))
    return sum(int(words[1]) for words in fields)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
