"""The checkpoints and the final output of a run, which are moved into their folder only once they are complete."""

import json
import shutil
from pathlib import Path

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import read_json

# Names and sizes in bytes of a checkpoint's files, written last.
_CONTENTS = "contents.json"
_PREFIX = "checkpoint-"
_KEPT = 2


class Checkpoints:
    """The checkpoints of a run, stored as `folder/checkpoint-STEP`. Only the newest two are kept.

    A checkpoint is written to `partial` and moved into place once it is complete, so a run that is killed or fills
    the disk leaves earlier checkpoints intact. A checkpoint that was truncated by a crash of the machine is
    recognised by its file sizes and skipped.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.partial = folder / "partial"

    def clear(self) -> None:
        """Delete the folder for unfinished files."""
        shutil.rmtree(self.partial, ignore_errors=True)

    def publish(self, step: int) -> None:
        """Move the checkpoint of `step` from `partial` into place, and delete all but the newest checkpoints."""
        source, target = self.partial / f"{_PREFIX}{step}", self.folder / f"{_PREFIX}{step}"
        sizes = {str(path.relative_to(source)): path.stat().st_size for path in _files(source)}
        (source / _CONTENTS).write_text(json.dumps(sizes, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        source.rename(target)
        self.clear()
        for old in self._by_step()[:-_KEPT]:
            shutil.rmtree(old, ignore_errors=True)

    def adopt(self, folder: Path, last: str) -> None:
        """Move the files in `partial` to `folder`. The file `last`, which marks completion, is moved last."""
        for path in sorted(self.partial.iterdir(), key=lambda path: (path.name == last, path.name)):
            path.replace(folder / path.name)
        self.partial.rmdir()

    def last(self) -> Path | None:
        """Return the newest complete checkpoint, or None if there is none."""
        return next((path for path in reversed(self._by_step()) if is_whole(path)), None)

    def last_step(self) -> int:
        """Return the step from which a run would resume, or 0 if there is no complete checkpoint."""
        last = self.last()
        return _step(last) if last else 0

    def _by_step(self) -> list[Path]:
        paths = self.folder.glob(f"{_PREFIX}*")
        return sorted((path for path in paths if path.name.removeprefix(_PREFIX).isdecimal()), key=_step)


def is_whole(checkpoint: Path) -> bool:
    """True if every file of a checkpoint exists and still has its original size."""
    try:
        sizes = read_json(checkpoint / _CONTENTS)
    except UserError:
        return False
    return all(
        (checkpoint / name).is_file() and (checkpoint / name).stat().st_size == sizes[name] for name in sizes
    )


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix(_PREFIX))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
