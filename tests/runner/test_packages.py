"""One way to open a package in the runner: folder or archive, its bytes the frozen ones, nothing unpacked."""

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from runner import packages as opening
from runner.cli import main
from runner.errors import UsageError
from runner.packages import opened, read
from runner.records import canonical
from runner.redact import redaction
from tests.oracle.builder import reindex, write
from tests.redact.support import MACHINE, leaky_package, read_files, verdict_of
from tests.runner.pasts import package


def archive(folder: Path, out: Path, top: bool = True, mode: str = "w:gz") -> Path:
    with tarfile.open(out, mode) as tar:
        if top:
            tar.add(folder, folder.name)
        else:
            for item in sorted(folder.iterdir()):
                tar.add(item, f"./{item.name}")
    return out


@pytest.fixture
def folder(tmp_path):
    return package().write(tmp_path / "in")


def test_an_archive_holds_the_same_package_as_its_folder(folder, tmp_path):
    whole = read(folder)
    assert whole.id == folder.name and len(whole.files) > 10
    for name, top, mode in (("a.tar.gz", True, "w:gz"), ("b.tar", False, "w"), ("c.tar.gz", False, "w:gz")):
        assert read(archive(folder, tmp_path / name, top, mode)) == whole


def hostile(member_of):
    def make(folder, tmp_path):
        path = archive(folder, tmp_path / "x.tar", mode="w")
        with tarfile.open(path, "a") as tar:
            member, data = member_of(folder.name)
            tar.addfile(member, io.BytesIO(data))
        return path

    return make


def entry(name, kind=tarfile.REGTYPE, link="", data=b"x"):
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, link, len(data) if kind == tarfile.REGTYPE else 0
    return member, data


HOSTILE = {
    "climbs": hostile(lambda top: entry(f"{top}/../../escaped")),
    "absolute": hostile(lambda _: entry("/tmp/escaped")),
    "a link": hostile(lambda top: entry(f"{top}/link", tarfile.SYMTYPE, "/etc/passwd")),
    "a hard link": hostile(lambda top: entry(f"{top}/hard", tarfile.LNKTYPE, f"{top}/run.json")),
    "a device": hostile(lambda top: entry(f"{top}/null", tarfile.CHRTYPE)),
    "a path twice": hostile(lambda top: entry(f"{top}/run.json")),
    "a file beside the folder": hostile(lambda _: entry("stray")),
    "no archive": lambda _f, tmp_path: wrote(tmp_path / "x.tar", b"hello"),
    "empty": lambda _f, tmp_path: wrote(tmp_path / "x.tar", b""),
    "torn": lambda f, tmp_path: torn(archive(f, tmp_path / "x.tar.gz"), lambda d: d[: len(d) // 2]),
    "damaged": lambda f, tmp_path: torn(archive(f, tmp_path / "x.tar.gz"), flipped),
    "gzip of something else": lambda _f, tmp_path: wrote(tmp_path / "x.tar.gz", gzip.compress(b"hello")),
    "a folder that is none": lambda f, _t: f.parent,
    "nothing": lambda f, _t: f / "nowhere",
    "a file of a package": lambda f, _t: f / "run.json",
    "changed": lambda f, _t: changed(f),
    "a link in a folder": lambda f, _t: linked(f),
}


def wrote(path, data):
    path.write_bytes(data)
    return path


def torn(path, how):
    return wrote(path, how(path.read_bytes()))


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes(64) + data[middle + 64 :]


def changed(folder):
    ledger = next(folder.rglob("ledger.jsonl"))
    ledger.write_bytes(ledger.read_bytes().replace(b"10000", b"99999"))
    return folder


def linked(folder):
    (folder / "link").symlink_to("/etc/passwd")
    return folder


@pytest.mark.parametrize("command", ["cost", "redact"])
@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_not_a_whole_package_is_refused_and_nothing_is_written(
    case, command, folder, tmp_path, capsys
):
    path = HOSTILE[case](folder, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert (
        main([command, str(path), *(["--out", str(tmp_path / "out")] if command == "redact" else [])]) == 64
    )
    told = capsys.readouterr()
    assert told.out == "" and "next:" in told.err and "Traceback" not in told.err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_bomb_is_refused_before_it_is_read(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "MAX_BYTES", 1000)
    with pytest.raises(UsageError, match="too large"):
        opened(archive(folder, tmp_path / "x.tar.gz"))


def test_an_archive_costs_what_its_folder_costs(folder, tmp_path, capsys):
    told = []
    for path in (folder, archive(folder, tmp_path / "x.tar.gz")):
        assert main(["cost", str(path), "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1] and told[0]["estimate_micro_usd"] > 0


@pytest.mark.parametrize("missing", ["run.json", "template.json", "protocol.toml"])
def test_a_package_without_what_is_counted_is_no_fault_of_the_lab(folder, tmp_path, capsys, missing):
    files = read_files(folder)
    del files[missing]
    assert main(["cost", str(write(reindex(files), tmp_path / "less"))]) == 64
    told = capsys.readouterr()
    assert missing in told.err and "fault of the lab" not in told.err


def test_an_archive_is_redacted_to_the_same_bytes_as_its_folder(tmp_path):
    from runner.redact.redaction import redact

    folder = leaky_package(tmp_path / "in")
    packed = archive(folder, tmp_path / "x.tar.gz")
    for path, out in ((folder, "one"), (packed, "two")):
        redact(path, tmp_path / out, MACHINE, verdict_of)
    assert read_files(tmp_path / "one") == read_files(tmp_path / "two")


def test_a_package_that_may_not_be_read_is_not_called_something_else(folder, monkeypatch, capsys):
    def closed(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", closed)
    assert main(["cost", str(folder)]) == 70
    told = capsys.readouterr().err
    assert "Permission denied" in told and "is no package" not in told and "fault of the lab" not in told


def test_a_package_of_another_version_is_refused_by_name(folder, tmp_path, capsys):
    files = read_files(folder)
    index = json.loads(files["index.json"])
    files["index.json"] = canonical({**index, "version": 2})
    for command in (["cost"], ["redact", "--out", str(tmp_path / "out")]):
        assert main([*command, str(write(files, tmp_path / command[0]))]) == 64
        assert "format suc-evidence version 1" in capsys.readouterr().err


def test_a_folder_that_may_not_be_written_is_refused_before_any_work(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(redaction.os, "access", lambda *_: False)
    assert main(["redact", str(folder), "--out", str(tmp_path / "out")]) == 64
    assert f"{tmp_path} is not writable" in capsys.readouterr().err
