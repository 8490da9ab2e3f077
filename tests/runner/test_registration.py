"""What was registered is compared file by file; a time-stamp of a real responder is checked offline."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from runner import protocol as protocols
from runner.cli import main
from runner.commands import preregister as commands_preregister
from runner.errors import LabError, UsageError
from runner.study import registration, timestamp
from tests.runner.pasts import REHEARSAL
from tests.runner.tsa import Tsa

PROJECT = Path(__file__).resolve().parents[2]
ASSETS = [{"logical_id": "Layer", "sha256": "aa"}, {"logical_id": "Provider", "sha256": "bb"}]


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A tree with what a registration digests, free to be changed."""
    shutil.copytree(PROJECT / "oracle", tmp_path / "oracle", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("SUC_REGISTRATIONS_DIR", str(tmp_path / "evidence/preregistrations"))
    (tmp_path / "evidence").mkdir()
    shutil.copy(PROJECT / "evidence/FORMAT.md", tmp_path / "evidence")
    return tmp_path


@pytest.fixture
def registered(root):
    said = registration.contents(REHEARSAL, ASSETS, 0, root)
    return registration.write(said, "20261129T120000Z")


def changed(root, registered, protocol=REHEARSAL, assets=ASSETS):
    return registration.differences(registration.read(registered), protocol, assets, root)


def test_nothing_differs_from_a_fresh_registration(root, registered):
    assert changed(root, registered) == []


def test_each_difference_is_named(root, registered):
    (root / "oracle/judge.py").write_text("# changed\n")
    (root / "oracle/new.py").write_text("")
    (root / "oracle/dynamo.py").unlink()
    (root / "evidence/FORMAT.md").write_text("other")
    other = [{"logical_id": "Layer", "sha256": "cc"}, ASSETS[1]]
    assert changed(root, registered, protocols.load("study-1"), other) == [
        "protocol study-1",
        "oracle/dynamo.py",
        "oracle/judge.py",
        "oracle/new.py",
        "evidence/FORMAT.md",
        "asset Layer",
    ]


def test_the_canonical_stage_records_the_registration_it_stands_on(root, registered):
    ground = registration.demand(REHEARSAL, root)
    assert ground["file"] == "study-1-rehearsal-20261129T120000Z.json"
    assert len(ground["sha256"]) == 64


def test_without_a_registration_the_canonical_stage_is_refused(root):
    with pytest.raises(UsageError, match="not registered") as refusal:
        registration.demand(REHEARSAL, root)
    assert refusal.value.next_step == "python -m runner preregister --protocol study-1-rehearsal"


@pytest.mark.parametrize("path", ["oracle/judge.py", "evidence/FORMAT.md"])
def test_a_changed_judge_or_format_is_refused_by_name(root, registered, path):
    with (root / path).open("a") as file:
        file.write("\n# a rule made softer\n")
    with pytest.raises(UsageError) as refusal:
        registration.demand(REHEARSAL, root)
    assert path in refusal.value.found and refusal.value.exit_code == 64


def test_the_newest_registration_of_the_very_protocol_counts(root, registered):
    for stamp in ("20261130T000000Z", "20251130T000000Z"):
        registration.write(registration.contents(REHEARSAL, [], 0, root), stamp)
    assert registration.newest("study-1-rehearsal").name == "study-1-rehearsal-20261130T000000Z.json"
    assert registration.newest("study-1") is None


def test_a_registration_is_never_overwritten(root, registered):
    with pytest.raises(UsageError):
        registration.write(registration.contents(REHEARSAL, [], 0, root), "20261129T120000Z")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"suc":"suc-preregistration","version":2}'])
def test_what_is_no_registration_is_refused(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UsageError, match="no registration"):
        registration.read(tmp_path / "x.json")


# -- time-stamps ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tsa(tmp_path_factory):
    with Tsa(tmp_path_factory.mktemp("tsa")) as running:
        yield running


@pytest.fixture
def stamped(registered, tsa):
    timestamp.stamp(registered, tsa.url, tsa.root.read_bytes())
    return registered


def test_a_stamped_registration_verifies_offline_and_openssl_agrees(stamped):
    assert timestamp.verify(stamped).endswith("+00:00")
    beside = {suffix: str(stamped.with_suffix(suffix)) for suffix in (".tsr", ".tsa.pem", ".root.pem")}
    command = ["openssl", "ts", "-verify", "-data", str(stamped), "-in", beside[".tsr"]]
    command += ["-CAfile", beside[".root.pem"], "-untrusted", beside[".tsa.pem"]]
    assert "Verification: OK" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_registration_without_a_token_says_so(registered):
    assert timestamp.verify(registered) is None


def test_a_changed_registration_does_not_verify(stamped):
    stamped.write_bytes(stamped.read_bytes().replace(b'"at_ms":0', b'"at_ms":1'))
    with pytest.raises(LabError, match="does not hold"):
        timestamp.verify(stamped)


def test_a_flipped_byte_in_the_token_does_not_verify(stamped):
    reply = bytearray(stamped.with_suffix(".tsr").read_bytes())
    reply[-5] ^= 1
    stamped.with_suffix(".tsr").write_bytes(bytes(reply))
    with pytest.raises(LabError, match="does not hold"):
        timestamp.verify(stamped)


def test_another_root_does_not_vouch(registered, tsa, tmp_path_factory):
    other = Tsa(tmp_path_factory.mktemp("other"))
    with pytest.raises(LabError, match="does not hold"):
        timestamp.stamp(registered, tsa.url, other.root.read_bytes())
    assert timestamp.verify(registered) is None, "nothing was kept"


def test_an_old_reply_to_another_request_is_no_answer(stamped, tsa, monkeypatch):
    old = stamped.with_suffix(".tsr").read_bytes()
    monkeypatch.setattr(tsa, "reply", lambda _request: old)
    with pytest.raises(LabError, match="Nonce"):
        timestamp.stamp(stamped, tsa.url, tsa.root.read_bytes())


@pytest.mark.parametrize("suffix", [".tsq", ".tsa.pem", ".root.pem"])
def test_a_missing_part_is_no_proof(stamped, suffix):
    stamped.with_suffix(suffix).unlink()
    with pytest.raises(LabError, match="missing"):
        timestamp.verify(stamped)


def test_a_service_that_does_not_answer_leaves_nothing(registered, tsa):
    with pytest.raises(LabError, match="did not answer"):
        timestamp.stamp(registered, "http://127.0.0.1:1/", tsa.root.read_bytes())
    with pytest.raises(UsageError):
        timestamp.stamp(registered, "file:///etc/passwd", tsa.root.read_bytes())
    assert timestamp.verify(registered) is None


# -- the command ----------------------------------------------------------------------------------


@pytest.fixture
def command(tmp_path, monkeypatch):
    """`preregister` writing to a folder of the test, with assets that need no synthesis."""
    monkeypatch.setenv("SUC_REGISTRATIONS_DIR", str(tmp_path / "preregistrations"))
    monkeypatch.setattr(commands_preregister, "synthesised_assets", lambda _protocol: ASSETS)
    return lambda *arguments: main(["preregister", *arguments])


def test_the_command_registers_and_verifies(command, tsa, capsys):
    asked = ("--protocol", "study-1-rehearsal", "--timestamp", tsa.url, "--tsa-root", str(tsa.root))
    assert command(*asked) == 0
    path = capsys.readouterr().out.strip()
    assert command("verify", path, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["changed"] == [] and told["assets_compared"] and told["time_stamped"]
    said = json.loads(Path(path).read_text())
    assert said["protocol"] == {"name": REHEARSAL.name, "sha256": REHEARSAL.sha256}
    assert said["assets"] == ASSETS and said["code"].keys() == {"commit", "dirty"}


def test_a_time_stamp_without_a_root_is_refused(command, capsys):
    assert command("--timestamp", "http://127.0.0.1:1/") == 64
    assert "root certificate" in capsys.readouterr().err


def test_a_failed_time_stamp_leaves_no_registration(command, tsa, tmp_path, capsys):
    asked = (
        "--protocol",
        "study-1-rehearsal",
        "--timestamp",
        "http://127.0.0.1:1/",
        "--tsa-root",
        str(tsa.root),
    )
    assert command(*asked) == 70
    assert list((tmp_path / "preregistrations").iterdir()) == []


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_an_interrupted_time_stamp_leaves_no_registration(command, tsa, tmp_path, monkeypatch, raised):
    def stamp(*_):
        raise raised

    monkeypatch.setattr(timestamp, "stamp", stamp)
    assert command("--timestamp", tsa.url, "--tsa-root", str(tsa.root)) == 70
    assert list((tmp_path / "preregistrations").iterdir()) == []


@pytest.mark.parametrize("member", ["protocol", "oracle", "format", "assets"])
def test_a_registration_that_lacks_a_member_is_none(tmp_path, capsys, member):
    said = registration.contents(protocols.load("study-1"), [], 1)
    said.pop(member)
    path = tmp_path / "r.json"
    path.write_text(json.dumps(said))
    assert main(["preregister", "verify", "--no-assets", str(path)]) == 64
    assert "is no registration" in capsys.readouterr().err
