"""End to end: from a package that gives everything away to a folder that a stranger can check."""

import hashlib
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from runner.errors import UsageError
from runner.redact.known import Machine
from runner.redact.redaction import redact
from runner.redact.replace import Refused
from runner.redact.source import read_package
from runner.runs.oracle_command import judge
from tests.oracle.builder import encode, four_cells, reindex, write
from tests.redact import support
from tests.redact.support import ACCOUNT, D28, MACHINE, leaky_package, names, read_files, verdict_of

ARCHIVE, MANIFEST = "study-1-rehearsal-evidence.tar.gz", "redaction-manifest.json"
# The article's one-liner, word for word but for the archive's name.
ONE_LINER = r"""
tar -xzf study-1-rehearsal-evidence.tar.gz
jq -r '.files[] | "\(.redacted_sha256)  \(.path)"' redaction-manifest.json \
  | shasum -a 256 -c --quiet -
"""


def unpack(out: Path, target: Path) -> Path:
    """Extract the public archive and return the package's folder."""
    with tarfile.open(out / ARCHIVE) as archive:
        archive.extractall(target, filter="data")
    return next(target.iterdir())


def manifest(out: Path) -> dict[str, dict]:
    """Return the manifest's entries by path inside the package."""
    files = json.loads((out / MANIFEST).read_bytes())["files"]
    return {entry["path"].split("/", 1)[1]: entry for entry in files}


def test_d28_every_form_of_an_account_id_becomes_the_same_pseudonym(tmp_path):
    package = leaky_package(tmp_path / "in", D28)
    done = redact(package, tmp_path / "out", MACHINE, verdict_of)
    copy = unpack(tmp_path / "out", tmp_path / "unpacked")
    extra = json.loads((copy / "environment.json").read_bytes())["extra"]
    pseudonym = "999900000001"
    assert extra["arn"] == f"arn:aws:sqs:us-east-1:{pseudonym}:durable.fifo"
    assert extra["gov"] == f"arn:aws-us-gov:iam::{pseudonym}:role/lab"
    assert extra["no region, no account"] == f"arn:aws:s3:::cdk-hnb659fds-assets-{pseudonym}-us-east-1"
    assert extra["queue"] == f"https://sqs.us-east-1.amazonaws.com/{pseudonym}/durable.fifo"
    assert extra["url"] == f"arn%3Aaws%3Asqs%3Aus-east-1%3A{pseudonym}%3Aq"
    assert extra["number"] == int(pseudonym)
    assert extra["console"] == extra["percent digits"] == extra["unicode escapes"] == pseudonym
    assert extra[f"key {pseudonym}"] == "value"
    escaped = json.loads(json.loads(extra["escaped"])["outer"])
    assert escaped == {name: support.D28[of].replace(ACCOUNT, pseudonym) for name, of in
                       (("arn", "arn"), ("url", "queue"))}  # fmt: skip
    for form, value in D28.items():
        if form.startswith("base64"):
            assert extra[form] != value
    assert set(done.replaced) == {"account-id"}
    everything = b"".join(file.read_bytes() for file in copy.rglob("*") if file.is_file())
    assert ACCOUNT.encode() not in everything


def test_d28_base64_is_written_anew_in_its_own_alphabet(tmp_path):
    from base64 import b64decode, urlsafe_b64decode

    package = leaky_package(tmp_path / "in", D28)
    redact(package, tmp_path / "out", MACHINE, verdict_of)
    extra = json.loads((unpack(tmp_path / "out", tmp_path / "u") / "environment.json").read_bytes())["extra"]
    arn = support.ARN.replace(ACCOUNT, "999900000001").encode()
    assert b64decode(extra["base64"]) == arn
    assert b64decode(extra["base64 after two"]) == b"xy" + arn
    urlsafe = extra["base64 urlsafe, unpadded"]
    assert urlsafe_b64decode(urlsafe + "=" * (-len(urlsafe) % 4)) == b"\xff\xfe\xfd" + arn
    inner = json.loads(b64decode(extra["base64 in json in base64"]))["p"]
    assert b64decode(inner) == arn


def test_every_kind_of_known_value_is_replaced(tmp_path):
    extra = {
        "stack": f"arn:aws:cloudformation:us-east-1:{ACCOUNT}:stack/SucStudy1/{support.STACK_UUID}",
        "bare stack": support.STACK_UUID.upper(),
        "log": f"START RequestId: {support.REQUEST_UUID} Version: 1",
        "other": {"caused": f"req {support.REQUEST_UUID}"},
        "credential": f"X-Amz-Credential={support.KEY}%2F20261129%2Fus-east-1%2Fs3%2Faws4_request",
        "role": f"{support.ROLE_ID}:session",
        "signed": f"https://b.s3.amazonaws.com/k?X-Amz-Signature={support.SIGNATURE}&X-Amz-Expires=600",
        "headers": {"X-Amz-Security-Token": support.TOKEN},
        "token in a url": "X-Amz-Security-Token=" + support.TOKEN.replace("/", "%2F").replace("=", "%3D"),
        "path": 'File "/srv/lab/lambdas/caller.py", line 3',
        "home": "/home/mario.rossi/.aws/config and /Users/luigi/.aws",
        "who": "Mario.Rossi@MARIOS-LAPTOP and luigi",
        "endpoint": "http://127.0.0.1:40123/000000000000/q",
    }
    package = leaky_package(tmp_path / "in", extra)
    done = redact(package, tmp_path / "out", MACHINE, verdict_of)
    shown = json.loads((unpack(tmp_path / "out", tmp_path / "u") / "environment.json").read_bytes())["extra"]
    stack_uuid, request_uuid = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-9000-000000000001"
    assert shown == {
        "stack": f"arn:aws:cloudformation:us-east-1:999900000001:stack/SucStudy1/{stack_uuid}",
        "bare stack": stack_uuid,
        "log": f"START RequestId: {request_uuid} Version: 1",
        "other": {"caused": f"req {request_uuid}"},
        "credential": "X-Amz-Credential=AKIA-REDACTED-1%2F20261129%2Fus-east-1%2Fs3%2Faws4_request",
        "role": "AROA-REDACTED-2:session",
        "signed": "https://b.s3.amazonaws.com/k?X-Amz-Signature=signature-1&X-Amz-Expires=600",
        "headers": {"X-Amz-Security-Token": "secret-1"},
        "token in a url": "X-Amz-Security-Token=secret-1",
        "path": 'File "/path-3/lambdas/caller.py", line 3',
        "home": "/path-1/.aws/config and /path-2/.aws",
        "who": "user-1@host-1 and user-2",
        "endpoint": "http://endpoint-1.invalid/000000000000/q",
    }
    assert {"stack-id", "request-id", "access-key-id", "signature", "secret", "local-path", "user-name",
            "host-name", "local-endpoint", "account-id"} == set(done.replaced)  # fmt: skip


def test_the_copy_is_a_valid_package_with_the_verdict_of_the_original(tmp_path):
    package = leaky_package(tmp_path / "in", D28, build=four_cells)
    before = judge(package)
    done = redact(package, tmp_path / "out", MACHINE, judge)
    copy = unpack(tmp_path / "out", tmp_path / "unpacked")
    after = judge(copy)
    assert before["verdict"] == after["verdict"] == done.verdict == "fail"
    assert [t["validity"] for t in before["trials"]] == [t["validity"] for t in after["trials"]]
    assert json.loads((copy / "redactions.json").read_bytes())["replaced"] == done.replaced
    assert copy.name == done.id == after["package"]["id"] != done.original_id == package.name
    assert after["integrity"]["ok"] is True


@pytest.mark.skipif(
    not all(map(shutil.which, ("tar", "jq", "shasum"))),
    reason="the article's one-liner needs tar, jq and shasum",
)
def test_the_articles_one_liner_checks_the_copy(tmp_path):
    redact(leaky_package(tmp_path / "in", D28), tmp_path / "out", MACHINE, verdict_of)
    run = ["bash", "-o", "pipefail", "-e", "-c", ONE_LINER]
    done = subprocess.run(run, cwd=tmp_path / "out", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # And it is no rubber stamp: one changed byte in the packed copy makes it fail.
    spoilt = json.loads((tmp_path / "out" / MANIFEST).read_bytes())
    spoilt["files"][0]["redacted_sha256"] = "0" * 64
    (tmp_path / "out" / MANIFEST).write_text(json.dumps(spoilt))
    done = subprocess.run(run, cwd=tmp_path / "out", capture_output=True, text=True, check=False)
    assert done.returncode == 1


def test_the_manifest_lists_every_file_and_every_replacement(tmp_path):
    package = leaky_package(tmp_path / "in", {"arn": support.ARN, "twice": f"{ACCOUNT} {ACCOUNT}"})
    redact(package, tmp_path / "out", MACHINE, verdict_of)
    copy, entries = unpack(tmp_path / "out", tmp_path / "u"), manifest(tmp_path / "out")
    on_disk = {f.relative_to(copy).as_posix(): f.read_bytes() for f in copy.rglob("*") if f.is_file()}
    assert {path: entry["redacted_sha256"] for path, entry in entries.items()} == {
        path: hashlib.sha256(data).hexdigest() for path, data in on_disk.items()
    }
    assert {"pointer": "/extra/twice", "rule": "account-id", "count": 2} in entries["environment.json"][
        "replacements"
    ]
    line = entries["trials/control-durable/queues.jsonl"]["replacements"][0]
    assert line == {"pointer": "/1/of", "rule": "account-id", "count": 1}
    assert entries["run.json"]["replacements"] == []
    assert ACCOUNT not in json.dumps(entries)


def test_a_digest_that_would_confirm_a_guess_is_withheld(tmp_path):
    """Who has the public environment.json can try a million million accounts against the original digest."""
    package = leaky_package(tmp_path / "in")
    redact(package, tmp_path / "out", MACHINE, verdict_of)
    entries, original = manifest(tmp_path / "out"), read_package(package)
    changed = {path for path, entry in entries.items() if entry["replacements"]}
    assert {"environment.json", "index.json"} <= changed
    assert {path for path, entry in entries.items() if "withheld" in entry} == changed
    assert {path for path, entry in entries.items() if entry["original_sha256"] is None} == {
        *changed,
        "redactions.json",
    }
    # The attack itself, on a search space cut down to what a test can afford.
    copy = unpack(tmp_path / "out", tmp_path / "u")
    public = (copy / "environment.json").read_bytes()
    guesses = (public.replace(b"999900000001", str(guess).encode()) for guess in (ACCOUNT, 123456789013))
    digests = {hashlib.sha256(guess).hexdigest() for guess in guesses}
    assert original.sha256("environment.json") in digests
    assert not digests & {entry["original_sha256"] for entry in entries.values()}
    assert original.sha256("run.json") == entries["run.json"]["original_sha256"]


def test_a_digest_over_a_random_value_is_published(tmp_path):
    package = leaky_package(tmp_path / "in", {"log": f"RequestId: {support.REQUEST_UUID}"})
    redact(package, tmp_path / "out", MACHINE, verdict_of)
    entries, original = manifest(tmp_path / "out"), read_package(package)
    assert entries["environment.json"]["original_sha256"] == original.sha256("environment.json")
    # The index still names the digests of files that hold nothing but the account.
    assert entries["index.json"]["original_sha256"] is None


def test_an_emulated_package_keeps_the_emulators_account_and_all_its_digests(tmp_path):
    package = four_cells().write(tmp_path / "in")
    done = redact(package, tmp_path / "out", MACHINE, verdict_of)
    assert done.id == done.original_id
    assert done.replaced == {}
    entries = manifest(tmp_path / "out")
    assert all(entry["original_sha256"] == entry["redacted_sha256"] for entry in entries.values())


def test_the_same_package_gives_the_same_bytes_anywhere(tmp_path):
    package = leaky_package(tmp_path / "in", D28)
    redact(package, tmp_path / "one", MACHINE, verdict_of)
    elsewhere = Machine("peach", ("castle-01",), ("/home/peach",), {})
    redact(
        shutil.copytree(package, tmp_path / "moved" / package.name), tmp_path / "two", elsewhere, verdict_of
    )
    for name in (ARCHIVE, MANIFEST):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_redacting_a_public_copy_again_keeps_its_values_apart(tmp_path):
    two = {"a": support.ARN, "b": "arn:aws:iam::210987654321:root"}
    redact(leaky_package(tmp_path / "in", two), tmp_path / "out", MACHINE, verdict_of)
    copy = unpack(tmp_path / "out", tmp_path / "u")
    redact(copy, tmp_path / "again", MACHINE, verdict_of)
    extra = json.loads((unpack(tmp_path / "again", tmp_path / "v") / "environment.json").read_bytes())[
        "extra"
    ]
    assert len({extra["a"].split(":")[4], extra["b"].split(":")[4]}) == 2


def test_a_verdict_that_changes_is_refused(tmp_path):
    def moody(package: Path) -> dict:
        return {**verdict_of(package), "verdict": "pass" if package.suffix != ".gz" else "indeterminate"}

    with pytest.raises(Refused, match="change what the oracle says") as refusal:
        redact(leaky_package(tmp_path / "in"), tmp_path / "out", MACHINE, moody)
    assert refusal.value.exit_code == 2
    assert names(tmp_path) == ["in"]


def test_a_path_that_holds_a_known_value_is_refused(tmp_path):
    built = {path: data for path, data in read_files(leaky_package(tmp_path / "in")).items()}
    moved = {path.replace("control-durable", f"control-{ACCOUNT}"): data for path, data in built.items()}
    package = write(reindex(moved), tmp_path / "moved")
    with pytest.raises(Refused, match="name of a file") as refusal:
        redact(package, tmp_path / "out", MACHINE, verdict_of)
    assert ACCOUNT not in str(refusal.value)
    assert not (tmp_path / "out").exists()


def damaged(tmp_path: Path, damage) -> Path:
    """Return a package after `damage(root)` was done to it on disk."""
    package = leaky_package(tmp_path / "in")
    damage(package)
    return package


@pytest.mark.parametrize(
    "damage",
    [
        lambda root: (root / "run.json").unlink(),
        lambda root: (root / "notes.txt").write_text("extra"),
        lambda root: (root / "run.json").write_text("{}\n"),
        lambda root: (root / "link").symlink_to("run.json"),
        lambda root: (root / "index.json").write_text("{}"),
        lambda root: (root / "index.json").write_text('{"files":[],"format":"suc-evidence","version":1}\n'),
        lambda root: (root / "index.json").unlink(),
    ],
    ids=["missing", "extra", "changed", "link", "no index members", "empty index", "no index"],
)
def test_d26_a_package_that_is_not_whole_is_refused_before_anything_is_written(tmp_path, damage):
    package = damaged(tmp_path, damage)
    with pytest.raises(UsageError) as refusal:
        redact(package, tmp_path / "out", MACHINE, verdict_of)
    assert refusal.value.exit_code == 64
    assert names(tmp_path) == ["in"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"amount_minor":1000,"amount_minor":1}\n',
        b'{"a":{"k":1,"k":1}}\n',
        b'{"a":NaN}\n',
        b'\xef\xbb\xbf{"a":1}\n',
        b'{"a":1}',
        b'{"a": 1}\n',
        b'{"a":1}\n\n',
        b'{"a":"\\u0031"}\n',
    ],
)
def test_d27_a_document_that_is_not_canonical_is_refused(tmp_path, line):
    files = {**read_files(leaky_package(tmp_path / "in")), "trials/control-durable/logs.jsonl": line}
    with pytest.raises(UsageError, match="integrity"):
        redact(write(reindex(files), tmp_path / "bad"), tmp_path / "out", MACHINE, verdict_of)
    assert not (tmp_path / "out").exists()


def test_an_out_that_exists_or_lies_in_the_package_is_refused(tmp_path):
    package = leaky_package(tmp_path / "in")
    before = read_files(package)
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(package)
    for out in (tmp_path / "there", package / "out", tmp_path / "link" / "out", tmp_path / "no" / "out"):
        with pytest.raises(UsageError) as refusal:
            redact(package, out, MACHINE, verdict_of)
        assert refusal.value.exit_code == 64
    assert read_files(package) == before


def test_a_protocol_name_that_would_climb_out_of_the_folder_is_refused(tmp_path):
    files = read_files(leaky_package(tmp_path / "in"))
    run = {**json.loads(files["run.json"]), "protocol": "../../escaped"}
    package = write(reindex({**files, "run.json": encode(run)}), tmp_path / "bad")
    with pytest.raises(UsageError):
        redact(package, tmp_path / "out", MACHINE, verdict_of)
    assert names(tmp_path) == ["bad", "in"]


def test_the_command_publishes_and_says_so(tmp_path, capsys):
    from runner.cli import main

    package = leaky_package(tmp_path / "in")
    assert main(["redact", str(package), "--out", str(tmp_path / "out"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"] == "pass"
    assert names(tmp_path / "out") == [MANIFEST, ARCHIVE]
    assert main(["redact", str(package), "--out", str(tmp_path / "out")]) == 64
    assert main(["redact", str(tmp_path), "--out", str(tmp_path / "new")]) == 64
