"""Every package we publish is judged again, here and in CI: a verdict that changes fails the build."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PUBLISHED = PROJECT / "evidence" / "published"
COPIES = sorted(folder for folder in PUBLISHED.iterdir() if folder.is_dir())  # study-1, study-1-rehearsal

# The article's own check, word for word but for the archive's name.
ONE_LINER = """
tar -xzf {archive}
jq -r '.files[] | "\\(.redacted_sha256)  \\(.path)"' redaction-manifest.json \\
  | shasum -a 256 -c --quiet -
"""


def archive_of(folder: Path) -> Path:
    (archive,) = folder.glob("*-evidence.tar.gz")
    return archive


def oracle(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "oracle", *arguments], cwd=PROJECT, capture_output=True, text=True, check=False
    )


def judged(folder: Path) -> dict:
    done = oracle("judge", str(archive_of(folder)), "--json")
    return json.loads(done.stdout)


def test_one_canonical_and_one_rehearsal_package_are_published():
    assert [judged(folder)["protocol"] for folder in COPIES] == ["study-1", "study-1-rehearsal"]


@pytest.mark.parametrize("folder", COPIES, ids=lambda folder: folder.name)
def test_its_four_cells_are_valid_and_say_what_the_readme_says(folder):
    report = judged(folder)
    assert report["integrity"]["ok"] is True
    assert report["grade"] == "emulated"
    cells = [
        (
            t["scenario"],
            t["variant"],
            t["validity"],
            t["ledger_transactions"],
            t["refunded_minor"],
            t["verdict"],
        )
        for t in report["trials"]
    ]
    assert cells == [
        ("CONTROL", "conventional", "valid", 1, 10000, "pass"),
        ("CONTROL", "durable", "valid", 1, 10000, "pass"),
        ("COMMIT_THEN_TIMEOUT", "conventional", "valid", 2, 20000, "fail"),
        ("COMMIT_THEN_TIMEOUT", "durable", "valid", 2, 20000, "fail"),
    ]


@pytest.mark.parametrize("folder", COPIES, ids=lambda folder: folder.name)
def test_every_published_value_and_verdict_holds(folder):
    done = oracle("results", str(archive_of(folder)), str(folder / "results.json"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", COPIES, ids=lambda folder: folder.name)
def test_a_reader_with_tar_jq_and_shasum_can_check_it(folder, tmp_path):
    missing = [tool for tool in ("tar", "jq", "shasum") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}; CI has them")
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    command = ["bash", "-euo", "pipefail", "-c", ONE_LINER.format(archive=archive_of(folder).name)]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # And it can fail: one changed byte in any checked file.
    (changed, *_) = sorted(path for path in copy.rglob("trial.json"))
    changed.write_bytes(changed.read_bytes().replace(b'"armed"', b'"ARMED"'))
    check = command[:-1] + [ONE_LINER.split("\n", 2)[2]]
    again = subprocess.run(check, cwd=copy, capture_output=True, text=True, check=False)
    assert again.returncode != 0
