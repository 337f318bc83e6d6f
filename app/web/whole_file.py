"""Downloads that are complete before the first byte is sent.

An error while writing is therefore reported as an error, and no file is truncated.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from stepsight.core.errors import UserError


def whole_file(write: Callable[[Path], object], filename: str, media_type: str | None = None) -> FileResponse:
    """Return the file that `write` writes as a download called `filename`. Raises the errors of `write`, and
    `UserError` if the disk has no room for the file."""
    folder = TemporaryDirectory(prefix="stepsight-")
    path = Path(folder.name) / "file"
    try:
        write(path)
    except OSError as error:
        folder.cleanup()
        raise UserError(
            f"{folder.name}: the file cannot be written ({error.strerror}).",
            "Make room there, or name another folder with TMPDIR.",
        ) from None
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(path, filename=filename, media_type=media_type, background=BackgroundTask(folder.cleanup))
