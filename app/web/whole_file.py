"""Files for download that are whole before their first byte leaves: what fails on the way is answered as an error,
and no file is cut."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from stepsight.core.errors import UserError


def whole_file(write: Callable[[Path], object], filename: str, media_type: str | None = None) -> FileResponse:
    """What `write` puts into the file that it is given, to be saved as `filename`. Raises what `write` raises, and
    `UserError` where there is no room for the file."""
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
