"""Files that a command is asked to write: looked at before any work, written whole or not at all."""

import contextlib
import os
import re
import tempfile
from pathlib import Path

from runner.errors import UsageError

HEAD_BYTES = 4096
IDENTITY = re.compile(r"[0-9a-f]{64}")


def demand_file(out: Path, what: str, mark: bytes) -> None:
    """Refuse a place where `what` cannot be written, or where something else lies.

    `mark` is what the head of such a file holds, so that an earlier one may be replaced and nobody's
    text is. Raises UsageError.
    """
    if fault := _fault(out, what, mark):
        raise UsageError(
            f"{what} cannot be written to {out}",
            expected=f"a new file in an existing folder, or an earlier file of that kind ({what})",
            found=fault,
            next_step="choose another --out",
        )


def _fault(out: Path, what: str, mark: bytes) -> str | None:
    try:
        if not out.parent.is_dir():
            return f"no folder {out.parent}"
        if out.is_dir():
            return "a folder"
        if not os.access(out.parent, os.W_OK):
            return f"{out.parent} is not writable"
        if any(_is_package(folder) for folder in out.resolve().parents):
            return "a place in a package, whose integrity a file more would break"
        if out.is_symlink() or out.exists():
            if not out.is_file():
                return "something that is no file"
            with out.open("rb") as file:
                return None if mark in file.read(HEAD_BYTES) else f"a file that is not {what}"
    except OSError as error:
        return error.strerror or str(error)
    return None


def _is_package(folder: Path) -> bool:
    return IDENTITY.fullmatch(folder.name) is not None and (folder / "index.json").is_file()


def write_file(out: Path, data: bytes) -> None:
    """Write the file whole or not at all. Raises UsageError when the place does not take it."""
    partial: Path | None = None
    try:
        # Not `out` itself if it is a link: what it points to is what was asked for.
        place = out.resolve()
        with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".partial-", delete=False) as file:
            partial = Path(file.name)
            file.write(data)
        partial.chmod(0o644)
        partial.replace(place)
    except OSError as error:
        raise UsageError(
            f"cannot write {out}", found=error.strerror or str(error), next_step="choose another --out"
        ) from None
    finally:
        if partial is not None:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
