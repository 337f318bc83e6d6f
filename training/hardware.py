"""Graphics processors: what a plan takes their memory and speed to be.

Memory and peak are the makers' figures: bfloat16 with float32 sums, without sparsity. `link` is what one device is
assumed to send, and at the same time to receive, when weights are gathered from all: about three quarters of
NVLink, and of PCIe what devices that have no other way to each other keep up.
"""

from dataclasses import dataclass

from core.errors import UserError

GIB = 2**30
# The share of the memory that a run may fill: the rest goes to the driver, the library and what lies idle between.
USABLE = 0.92
# The share of the peak that training reaches where it does not wait for anything.
UTILISATION = 0.4


@dataclass(frozen=True)
class Gpu:
    """`memory` in GiB, `peak` in FLOP/s, `link` in bytes a second."""

    name: str
    memory: float
    peak: float
    link: float

    @property
    def usable(self) -> float:
        """Bytes that a run may fill."""
        return self.memory * GIB * USABLE


_GPUS = (
    Gpu("rtx-4090", 24, 165e12, 12e9),
    Gpu("a40", 48, 150e12, 12e9),
    Gpu("l40s", 48, 362e12, 12e9),
    Gpu("rtx-6000-pro", 96, 500e12, 25e9),
    Gpu("a100-40gb", 40, 312e12, 225e9),
    Gpu("a100-80gb", 80, 312e12, 225e9),
    Gpu("h100-80gb", 80, 989e12, 335e9),
    Gpu("h200", 141, 989e12, 335e9),
    Gpu("b200", 180, 2250e12, 675e9),
)
GPUS = {gpu.name: gpu for gpu in _GPUS}
DEFAULT = "h100-80gb"


def find_gpu(name: str) -> Gpu:
    """The GPU of that name. Raises `UserError` naming those there are."""
    if name not in GPUS:
        raise UserError(f"there is no figure of the GPU {name!r}.", f"Known are {', '.join(GPUS)}.")
    return GPUS[name]
