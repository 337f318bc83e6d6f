"""Numbers of bytes in words."""

from math import ceil


def sized(size: int) -> str:
    """A number of bytes: `7 kB`, `1.5 MB`, `15.2 GB`."""
    if size >= 1e9:
        return f"{size / 1e9:,.1f} GB"
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{ceil(size / 1000):,} kB"
