"""pyarrow, an extra, for whoever reads or writes Parquet."""

from typing import Any

from stepsight.core.errors import UserError


def load_parquet() -> tuple[Any, Any]:
    """`pyarrow` and `pyarrow.parquet`. Raises `UserError` where they are not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UserError("Parquet needs pyarrow.", "Run: pip install 'stepsight[parquet]'") from None
    return pyarrow, pyarrow.parquet
