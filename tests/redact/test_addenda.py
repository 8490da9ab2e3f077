"""A public copy of an addendum: the same rules, citing the public copy of its package, or nothing at all."""

import json
import tarfile
from pathlib import Path

import pytest

from runner.cli import main
from runner.errors import UsageError
from runner.packages import read
from runner.records import Reads
from runner.redact.addenda import ADDENDUM, redact_addendum
from runner.redact.redaction import redact
from runner.redact.replace import Refused
from runner.runs import addendum
from tests.redact.support import (
    ACCOUNT,
    ARN,
    D28,
    KEY,
    MACHINE,
    leaky_package,
    names,
    read_files,
    verdict_of,
)

OTHER = "210987654321"


def audit(**more) -> dict:
    found = [{"type": "AWS::SQS::Queue", "status": "PRESENT", "identifier": ARN, "found_by": ["name"]}]
    return {
        "format": "suc-audit",
        "account": ACCOUNT,
        "clean": False,
        "passes": [{"findings": found}],
        **more,
    }


def frozen(folder: Path, package: str | None, document: dict | None = None, kind: str = "audit") -> Path:
    reads = Reads(lambda: 1)
    reads.lines.append({"read": "audit", "response": {"Arn": ARN, "UserId": KEY}})
    return addendum.publish(folder, kind, package, {kind: document or audit()}, reads)


def unpacked(out: Path, name: str = "audit-addendum.tar.gz") -> dict[str, bytes]:
    with tarfile.open(out / name) as tar:
        return {m.name.partition("/")[2]: tar.extractfile(m).read() for m in tar.getmembers()}


def everything(out: Path) -> bytes:
    return b"".join(unpacked(out).values()) + (out / "redaction-manifest.json").read_bytes()


def test_the_copy_names_nobody_and_cites_the_packages_public_copy(tmp_path):
    package = leaky_package(tmp_path / "in", D28)
    made = frozen(tmp_path / "addenda", package.name)
    done = redact_addendum(made, tmp_path / "out", MACHINE, package)
    public = redact(package, tmp_path / "public", MACHINE, verdict_of)
    assert read(tmp_path / "out" / done.archive, ADDENDUM).index["package"] == public.id
    for secret in (ACCOUNT, KEY, package.name, made.name):
        assert secret.encode() not in everything(tmp_path / "out")
    pseudonym = json.loads(unpacked(tmp_path / "out")["audit.json"])["account"]
    with tarfile.open(tmp_path / "public" / public.archive) as tar:
        environment = json.loads(tar.extractfile(f"{public.id}/environment.json").read())
    assert pseudonym == environment["account"] and pseudonym.startswith("9999")


def test_a_value_of_the_addendum_alone_gets_a_pseudonym_of_its_own(tmp_path):
    package = leaky_package(tmp_path / "in")
    made = frozen(tmp_path / "a", package.name, audit(owner=OTHER))
    redact_addendum(made, tmp_path / "out", MACHINE, package)
    told = json.loads(unpacked(tmp_path / "out")["audit.json"])
    assert told["owner"] != told["account"] and told["owner"].startswith("9999")


def test_every_word_of_its_own_stays(tmp_path):
    made = frozen(tmp_path / "a", None)
    done = redact_addendum(made, tmp_path / "out", MACHINE, None)
    source = read(tmp_path / "out" / done.archive, ADDENDUM)
    assert source.index["kind"] == "audit" and source.index["package"] is None
    (finding,) = json.loads(source.files["audit.json"][1])["passes"][0]["findings"]
    assert (finding["status"], finding["type"]) == ("PRESENT", "AWS::SQS::Queue")
    assert source.files["redactions.json"][0] == "redactions"


def test_a_machine_whose_name_is_a_word_of_the_addendum_is_refused(tmp_path):
    machine = MACHINE.__class__("present", MACHINE.hosts, MACHINE.paths, {})
    with pytest.raises(Refused, match="would change what the addendum says"):
        redact_addendum(frozen(tmp_path / "a", None), tmp_path / "out", machine, None)
    assert names(tmp_path) == ["a"]


def test_what_the_scan_finds_is_not_published(tmp_path):
    # Hexadecimal is found by the scan and not undone by the replacement.
    made = frozen(tmp_path / "a", None, audit(note=ACCOUNT.encode().hex()))
    with pytest.raises(Refused, match="leak scan"):
        redact_addendum(made, tmp_path / "out", MACHINE, None)
    assert names(tmp_path) == ["a"]


def test_the_identity_of_the_original_package_is_not_let_through(tmp_path):
    package = leaky_package(tmp_path / "in")
    made = frozen(tmp_path / "a", package.name, audit(note=package.name))
    with pytest.raises(Refused, match="leak scan"):
        redact_addendum(made, tmp_path / "out", MACHINE, package)


@pytest.mark.parametrize("case", ["none given", "another", "not asked for"])
def test_the_package_must_be_the_one_that_is_cited(tmp_path, case):
    package = leaky_package(tmp_path / "in")
    cited = {"none given": package.name, "another": "f" * 64, "not asked for": None}[case]
    made = frozen(tmp_path / "a", cited)
    with pytest.raises(UsageError, match="cites a package"):
        redact_addendum(made, tmp_path / "out", MACHINE, None if case == "none given" else package)
    assert names(tmp_path) == ["a", "in"]


@pytest.mark.parametrize("kind", ["party", "audit/../.."])
def test_a_kind_that_is_none_is_refused(tmp_path, kind):
    made = addendum.publish(tmp_path / "a", kind, None, {"audit": audit()})
    with pytest.raises(UsageError, match="no addendum of this version"):
        redact_addendum(made, tmp_path / "out", MACHINE, None)


def test_an_addendum_whose_bytes_have_changed_is_refused(tmp_path):
    made = frozen(tmp_path / "a", None)
    (made / "audit.json").write_text("{}\n")
    with pytest.raises(UsageError, match="integrity"):
        redact_addendum(made, tmp_path / "out", MACHINE, None)


def test_the_command_takes_an_addendum_as_it_takes_a_package(tmp_path, capsys):
    package = leaky_package(tmp_path / "in")
    made = frozen(tmp_path / "a", package.name)
    out = tmp_path / "out"
    assert main(["redact", str(made), "--package", str(package), "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] is None and told["addendum"]["original_id"] == made.name
    assert main(["redact", str(package), "--package", str(package), "--out", str(tmp_path / "two")]) == 64
    assert main(["redact", str(made), "--out", str(tmp_path / "two")]) == 64
    assert f"--package with package {package.name}" in capsys.readouterr().err
    assert main(["cost", str(made)]) == 64
    assert "suc-evidence" in capsys.readouterr().err
    assert read_files(made) and not (tmp_path / "two").exists()
