"""A package appears whole under its own identity, or not at all; its environment says what was known."""

import hashlib
import json

import pytest

from runner.runs import freeze
from runner.targets.target import Lab


def freezer(folder):
    made = freeze.Freezer(folder)
    made.add("b.json", "run", b"{}\n")
    made.add("a/x.jsonl", "journal", b'{"a":1}\n')
    return made


def test_the_folder_is_named_by_its_index_which_lists_every_file(tmp_path):
    package = freezer(tmp_path).publish()
    index = (package.path / "index.json").read_bytes()
    assert package.id == package.path.name == hashlib.sha256(index).hexdigest()
    listed = json.loads(index)["files"]
    assert [entry["path"] for entry in listed] == ["a/x.jsonl", "b.json"]
    assert listed[1] == {
        "path": "b.json",
        "role": "run",
        "sha256": hashlib.sha256(b"{}\n").hexdigest(),
        "size": 3,
    }
    assert sorted(p.name for p in tmp_path.iterdir()) == [package.id]


def test_a_freeze_that_dies_leaves_nothing_that_looks_like_a_package(tmp_path):
    class Killed(Exception):
        pass

    def die(_identity):
        raise Killed

    with pytest.raises(Killed):
        freezer(tmp_path).publish(die)
    assert freeze.find_package(tmp_path) is None
    # ... and the next one is not disturbed by what is left.
    (tmp_path / ".partial" / "stale.json").write_bytes(b"{}\n")
    package = freezer(tmp_path).publish()
    assert not (package.path / "stale.json").exists()
    assert freeze.find_package(tmp_path) == package


def test_a_path_is_added_once(tmp_path):
    with pytest.raises(ValueError, match="already added"):
        freezer(tmp_path).add("b.json", "run", b"")


def test_the_environment_says_how_far_the_ground_was_seen_to_hold(monkeypatch):
    asked = []
    monkeypatch.setattr(freeze, "load_latest", lambda *where: asked.append(where) or {"holds": 18})
    lab = Lab("local", "emulated", "us-east-1", "0", "S", "CREATE_COMPLETE", {}, None, {"ministack": "1"})
    template = {"Resources": {"F": {"Properties": {"Code": {"S3Key": "abc.zip"}}}}}
    frozen = freeze.environment(lab, {}, template, 7)
    assert asked == [("local", "0", "us-east-1", {"ministack": "1"})]
    assert frozen["ground"] == {"holds": 18}
    assert frozen["assets"] == [{"logical_id": "F", "sha256": "abc"}]
    assert (frozen["target"], frozen["grade"], frozen["started_at_ms"]) == ("local", "emulated", 7)
