"""The dependency layer: this environment's own distributions, copied, slimmed and precompiled.

No network and no Docker: the files are those that the tests ran against. The zip is built once
per content under `build/` and reused.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from stacks.archive import BUILD_DIR, AssetError, digest, write_zip

# What the handlers import; their dependencies are found from their metadata.
ROOTS = ("boto3", "aws-durable-execution-sdk-python", "aws-lambda-powertools")

# The time to unpack every file counts in every cold start of the local cloud, so what handlers
# never import stays out. Of these folders only the named subfolders are kept (loose files stay):
# botocore alone brings models of some 450 services. A variant that needs more adds it here.
SERVICES = ("dynamodb", "lambda", "sqs", "sts")
KEPT = {
    "botocore/data": SERVICES,
    "boto3/data": SERVICES,
    "aws_lambda_powertools/utilities": ("jmespath_utils",),
}
LEFT_OUT = ("boto3/examples/", "aws_lambda_powertools/event_handler/")

NATIVE = (".so", ".pyd", ".dylib")


def layer_zip() -> tuple[Path, str]:
    """Return the layer's zip and its digest, building it if this content has none yet."""
    files = vendored_files()
    # Compiled files are not part of the digest (they follow from source and interpreter).
    sha256 = digest(files, salt=f"layer 1 {sys.implementation.cache_tag}")
    path = BUILD_DIR / f"layer-{sha256[:16]}.zip"
    if not path.exists():
        write_zip(path, _with_bytecode(files))
    return path, sha256


def vendored_files() -> dict[str, bytes]:
    """Return every source file of the layer by its name in the zip (`python/...`)."""
    files: dict[str, bytes] = {}
    for dist in closure(ROOTS):
        for name, path in _files_of(dist):
            if name.endswith(NATIVE):
                raise AssetError(
                    f"layer: {dist.name} {dist.version} holds compiled code\n"
                    f"  expected: pure Python, which runs on Lambda's arm64 as it does here\n"
                    f"  found:    {name}\n"
                    f"  next:     choose a release without it"
                )
            files[f"python/{name}"] = path.read_bytes()
    return files


def closure(roots: tuple[str, ...]) -> list[Distribution]:
    """Return the distributions that `roots` need at run time, sorted by name.

    Optional extras are left out; any other marker counts as true, which can only add.
    """
    found: dict[str, Distribution] = {}
    waiting = list(roots)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError as error:
            raise AssetError(
                f"layer: {name} is not installed in this environment\n"
                f"  expected: the dependencies of pyproject.toml\n"
                f"  next:     uv sync"
            ) from error
        for requirement in found[name].requires or ():
            if "extra ==" not in requirement:
                waiting.append(re.match(r"[A-Za-z0-9._-]+", requirement).group())
    return [found[name] for name in sorted(found)]


def _files_of(dist: Distribution) -> Iterator[tuple[str, Path]]:
    """Yield a distribution's importable files that are worth unpacking, by name."""
    for entry in dist.files or ():
        path = PurePosixPath(entry.as_posix())
        if not _left_out(path):
            yield path.as_posix(), Path(entry.locate())


def _left_out(path: PurePosixPath) -> bool:
    """Whether a file is a script, metadata, bytecode, or part of what no handler imports."""
    top = path.parts[0]
    if top == ".." or top.endswith(".dist-info") or "__pycache__" in path.parts:
        return True
    parent, child = "/".join(path.parts[:2]), path.parts[2:-1]
    unused = parent in KEPT and bool(child) and child[0] not in KEPT[parent]
    return unused or path.as_posix().startswith(LEFT_OUT)


def _with_bytecode(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return `files` and their bytecode for this interpreter, the one the local cloud runs.

    Unchecked-hash, because unpacking gives every file a new time, which makes ordinary bytecode
    stale (TRIALS 2). Lambda's own interpreter ignores the files of another version.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, content in files.items():
            target = root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        # Recorded paths are those inside Lambda, never of this machine; a fixed hash seed
        # keeps the order of set constants, and with it the bytes, the same.
        done = subprocess.run(
            [sys.executable, "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash",
             "-s", folder, "-p", "/opt", folder],
            env={"PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
        )  # fmt: skip
        if done.returncode:
            raise AssetError(
                f"layer: compileall failed\n  found:    {done.stdout.strip() or done.stderr.strip()}"
            )
        return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}
