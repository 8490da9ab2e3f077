"""The two assets every function shares: the handlers' code and the dependency layer."""

import zipfile
from dataclasses import dataclass
from pathlib import Path

from stacks.archive import BUILD_DIR, AssetError, digest, write_zip
from stacks.layer import layer_zip

SOURCE = Path(__file__).resolve().parent.parent / "lambdas"


@dataclass(frozen=True)
class Asset:
    """A zip ready to upload, and the digest that names it."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class Handlers:
    """What runs in every function: `code` at the root, `layer` beside it."""

    code: Asset
    layer: Asset


def handlers() -> Handlers:
    """Pack what changed since the last synth and return both assets."""
    return Handlers(code=Asset(*code_zip()), layer=Asset(*layer_zip()))


def code_zip(source: Path = SOURCE) -> tuple[Path, str]:
    """Return the zip that holds the package `lambdas/` at its root, and its digest.

    Stored, not compressed: the same sources give the same bytes on every machine, so Lambda's
    CodeSha256 can be compared with this file.
    """
    files = {
        f"lambdas/{path.relative_to(source).as_posix()}": path.read_bytes()
        for path in sorted(source.rglob("*.py"))
    }
    if not files:
        raise AssetError(f"handlers: no Python file under {source.name}/")
    sha256 = digest(files, salt="code 1")
    path = BUILD_DIR / f"code-{sha256[:16]}.zip"
    if not path.exists():
        write_zip(path, files, compression=zipfile.ZIP_STORED)
    return path, sha256
