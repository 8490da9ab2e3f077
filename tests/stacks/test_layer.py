"""The two assets: what is in them, what is not, and that the same sources give the same digest."""

import importlib.metadata
import marshal
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from stacks import archive, handlers, layer
from stacks.archive import AssetError, digest, write_zip
from tests.stacks.synthesis import PYTHON, ROOT


@pytest.fixture(scope="module")
def built() -> zipfile.ZipFile:
    path, _ = layer.layer_zip()
    with zipfile.ZipFile(path) as opened:
        yield opened


def test_the_closure_is_what_the_handlers_need_at_run_time() -> None:
    assert [d.name for d in layer.closure(layer.ROOTS)] == [
        "aws-durable-execution-sdk-python",
        "aws_lambda_powertools",
        "boto3",
        "botocore",
        "jmespath",
        "python-dateutil",
        "s3transfer",
        "six",
        "typing_extensions",
        "urllib3",
    ]


def test_a_missing_distribution_is_refused_by_name() -> None:
    with pytest.raises(AssetError, match="no-such-thing is not installed"):
        layer.closure(("no-such-thing",))


def test_compiled_code_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer, "ROOTS", ("markupsafe",))
    with pytest.raises(AssetError, match=r"MarkupSafe .* holds compiled code\n.*\n.*_speedups"):
        layer.vendored_files()


def test_the_layer_is_small_and_holds_only_the_services_it_names(built: zipfile.ZipFile) -> None:
    names = built.namelist()
    assert len(names) < 700
    assert sum(i.file_size for i in built.infolist()) < 12_000_000
    models = {n.split("/")[3] for n in names if n.startswith("python/botocore/data/") and n.count("/") > 4}
    assert models == set(layer.SERVICES)
    assert "python/botocore/data/endpoints.json" in names
    assert not [n for n in names if ".dist-info" in n or n.startswith("python/boto3/examples/")]
    assert all(n.startswith("python/") and ".." not in n for n in names)


def test_every_source_has_unchecked_hash_bytecode_for_this_interpreter(built: zipfile.ZipFile) -> None:
    names = set(built.namelist())
    sources = [PurePosixPath(n) for n in names if n.endswith(".py")]
    for source in sources:
        compiled = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
        assert str(compiled) in names
        # PEP 552: flags 1 = validated by hash, and not checked at import.
        assert built.read(str(compiled))[4:8] == b"\x01\0\0\0"


def test_bytecode_names_the_place_in_lambda_not_one_of_this_machine(built: zipfile.ZipFile) -> None:
    for name in built.namelist():
        if name.endswith(".pyc"):
            # PEP 552: sixteen bytes of header, then the module's code.
            source = PurePosixPath(marshal.loads(built.read(name)[16:]).co_filename)
            assert source.parent == PurePosixPath("/opt") / PurePosixPath(name).parent.parent


def test_the_same_sources_give_the_same_bytes(
    built: zipfile.ZipFile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(layer, "BUILD_DIR", tmp_path)
    monkeypatch.setattr(layer, "ROOTS", ("six",))
    first, sha256 = layer.layer_zip()
    before = first.read_bytes()
    first.unlink()
    assert layer.layer_zip() == (first, sha256)
    assert first.read_bytes() == before


def test_an_unchanged_layer_is_not_built_again(
    monkeypatch: pytest.MonkeyPatch, built: zipfile.ZipFile
) -> None:
    monkeypatch.setattr(layer, "write_zip", pytest.fail)
    assert str(layer.layer_zip()[0]) == built.filename


def test_one_changed_byte_or_name_changes_the_digest() -> None:
    files = {"a": b"1", "b": b"2"}
    other = [{"a": b"1", "b": b"3"}, {"a": b"1", "c": b"2"}, {"a": b"1"}, {"a": b"2", "b": b"1"}]
    assert len({digest(f, salt="s") for f in [files, *other]} | {digest(files, salt="t")}) == 6
    assert digest(dict(reversed(files.items())), salt="s") == digest(files, salt="s")


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_zip(tmp_path / "x.zip", {"a": None})
    assert list(tmp_path.iterdir()) == []


def test_the_code_holds_the_package_and_nothing_else() -> None:
    path, _ = handlers.code_zip()
    with zipfile.ZipFile(path) as code:
        names = code.namelist()
        assert all(i.compress_type == zipfile.ZIP_STORED for i in code.infolist())
    sources = sorted(f.relative_to(ROOT).as_posix() for f in (ROOT / "lambdas").rglob("*.py"))
    assert names == sources


def test_an_empty_handler_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match="no Python file under lambdas/"):
        handlers.code_zip(tmp_path / "lambdas")


HANDLERS = ("caller.conventional", "caller.durable", "provider.handler", "release.handler")

IMPORT_ALL = """
import importlib, sys
sys.path[:0] = sys.argv[1:3]
for name in sys.argv[3:]:
    assert callable(importlib.import_module("lambdas." + name).handler)
import botocore.session
session = botocore.session.get_session()
for service in ("dynamodb", "lambda"):
    session.create_client(service, region_name="us-east-1")
inside = tuple(sys.argv[1:3]) + (sys.base_prefix,)
files = [getattr(m, "__file__", None) or inside[0] for m in list(sys.modules.values())]
print([f for f in files if not f.startswith(inside)])
"""


@pytest.mark.slow
def test_every_handler_imports_from_the_code_and_the_layer_alone(
    built: zipfile.ZipFile, tmp_path: Path
) -> None:
    built.extractall(tmp_path)
    code, _ = handlers.code_zip()
    # -I -S: no environment, no site-packages; what is missing from the layer is missing.
    done = subprocess.run(
        [PYTHON, "-I", "-S", "-c", IMPORT_ALL, str(code), str(tmp_path / "python"), *HANDLERS],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_versions_in_the_layer_are_the_pinned_ones() -> None:
    pins = (ROOT / "pyproject.toml").read_text()
    for root in layer.ROOTS:
        assert f'"{root}=={importlib.metadata.version(root)}"' in pins


def test_assets_are_built_in_the_ignored_folder() -> None:
    assert "/build/" in (ROOT / ".gitignore").read_text().split()
    assert archive.BUILD_DIR == ROOT / "build"
