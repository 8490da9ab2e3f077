"""An addendum cites a package, is named by its bytes, and the right package is found for it."""

import hashlib
import json

import pytest

from runner import cli
from runner.errors import UsageError
from runner.local import launch
from runner.records import Reads
from runner.runs import addendum


def package(runs, run_id: str, started_at_ms: int, target: str = "local", protocol: str = "study-1") -> str:
    """Write what `newest_package` looks at of a package; return its id."""
    run = {"target": target, "protocol": protocol, "started_at_ms": started_at_ms}
    index = json.dumps({"of": run_id}).encode()
    folder = runs / run_id / hashlib.sha256(index).hexdigest()
    folder.mkdir(parents=True)
    (folder / "index.json").write_bytes(index)
    (folder / "run.json").write_text(json.dumps(run))
    return folder.name


def test_the_same_bytes_give_the_same_addendum_and_nothing_half_written_stays(tmp_path):
    one = addendum.publish(tmp_path, "audit", None, {"audit": {"clean": True}}, Reads(lambda: 1))
    again = addendum.publish(tmp_path, "audit", None, {"audit": {"clean": True}}, Reads(lambda: 1))
    other = addendum.publish(tmp_path, "audit", "a" * 64, {"audit": {"clean": True}}, Reads(lambda: 1))
    assert one == again != other
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted({one.name, other.name})
    index = json.loads((other / "index.json").read_bytes())
    assert index["package"] == "a" * 64
    assert [file["role"] for file in index["files"]] == ["audit", "reads"]


def test_the_newest_package_of_the_target_and_protocol_is_cited(tmp_path):
    assert addendum.newest_package(tmp_path, "local", "study-1") is None
    package(tmp_path, "r1", 1)
    newest = package(tmp_path, "r2", 3)
    package(tmp_path, "r3", 2)
    package(tmp_path, "r4", 9, target="aws")
    package(tmp_path, "r5", 9, protocol="study-1-rehearsal")
    addendum.publish(tmp_path / "addenda", "audit", None, {"audit": {}})
    assert addendum.newest_package(tmp_path, "local", "study-1") == newest


def test_a_package_is_known_by_its_bytes(tmp_path):
    identity = package(tmp_path, "r1", 1)
    folder = tmp_path / "r1" / identity
    assert addendum.package_id(folder) == identity
    (folder / "index.json").write_text("{}")
    with pytest.raises(UsageError, match="not a published package"):
        addendum.package_id(folder)


@pytest.mark.parametrize("command", ["audit", "cleanup"])
def test_without_a_local_cloud_there_is_nothing_to_look_at(command, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path))
    monkeypatch.setattr(launch, "find", lambda: None)
    assert cli.main([command, "--target", "local"]) == 64
    assert "no local cloud is up" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_negative_delay_is_refused(capsys):
    assert cli.main(["audit", "--target", "local", "--delay-s", "-1"]) == 64
    assert "--delay-s" in capsys.readouterr().err
