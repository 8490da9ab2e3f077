"""The commands as a sceptic types them: exit codes, streams, archives, isolation, citations."""

from __future__ import annotations

import ast
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from oracle.cli import main
from oracle.codes import CODES
from tests.oracle.bad_bytes import tar_of
from tests.oracle.builder import control, four_cells, package_with, treatment
from tests.oracle.frozen import write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """The published study's four cells, a package that passes, and one that is neither."""
    folder = tmp_path_factory.mktemp("packages")
    unfinished = package_with(control)
    unfinished.docs["trials/control-conventional/trial.json"]["ended_because"] = "interrupted"
    built = {"fail": four_cells(), "pass": package_with(control), "indeterminate": unfinished}
    return {name: package.write(folder) for name, package in built.items()}


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("verdict, code", [("pass", 0), ("fail", 1), ("indeterminate", 2)])
def test_judge_ends_with_the_code_of_its_verdict(packages, capsys, verdict, code):
    found, out, err = run(capsys, "judge", packages[verdict])
    assert (found, out.splitlines()[-1], err) == (code, f"verdict   {verdict}", "")


def test_judge_json_says_what_the_article_says(packages, capsys):
    code, out, _ = run(capsys, "judge", packages["fail"], "--json")
    report = json.loads(out)
    rows = [
        (
            t["scenario"],
            t["variant"],
            t["ledger_transactions"],
            t["refunded_minor"],
            t["currency"],
            t["verdict"],
        )
        for t in report["trials"]
    ]
    assert code == 1 and rows == [
        ("CONTROL", "conventional", 1, 10_000, "BRL", "pass"),
        ("CONTROL", "durable", 1, 10_000, "BRL", "pass"),
        ("COMMIT_THEN_TIMEOUT", "conventional", 2, 20_000, "BRL", "fail"),
        ("COMMIT_THEN_TIMEOUT", "durable", 2, 20_000, "BRL", "fail"),
    ]
    assert [t["correct_completion"] for t in report["trials"]] == [True, True, False, False]
    assert [t["validity"] for t in report["trials"]] == ["valid"] * 4
    assert [t["processing"] for t in report["trials"]] == ["SUCCEEDED"] * 4
    assert [t["effect_knowledge"] for t in report["trials"]] == ["KNOWN", "KNOWN", "UNKNOWN", "UNKNOWN"]
    assert {f["code"] for t in report["trials"] for f in t["findings"]} == {"E01", "E02", "E03"}
    assert (report["format"], report["version"], report["grade"]) == ("suc-verdict", 1, "emulated")
    assert report["package"]["id"] == packages["fail"].name and report["integrity"]["ok"]


def test_one_changed_byte_anywhere_is_indeterminate(packages, tmp_path, capsys):
    for path in sorted(packages["fail"].rglob("*")):
        if path.is_dir():
            continue
        copy = tmp_path / "copy"
        shutil.copytree(packages["fail"], copy)
        target = copy / path.relative_to(packages["fail"])
        data = bytearray(target.read_bytes())
        data[len(data) // 2] ^= 1
        target.write_bytes(data)
        code, out, _ = run(capsys, "judge", copy)
        assert (code, out.splitlines()[-1]) == (2, "verdict   indeterminate"), path.name
        shutil.rmtree(copy)


def test_mistakes_are_one_sentence_and_code_64(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("hello")
    (tmp_path / "cut.tar.gz").write_bytes(b"\x1f\x8b\x08\x00\x00")
    for name in ("nothing", "empty", "note.txt", "cut.tar.gz"):
        code, out, err = run(capsys, "judge", tmp_path / name)
        assert (code, out, len(err.splitlines())) == (64, "", 1) and name in err and "expected" in err


@pytest.mark.parametrize(
    "arguments", [[], ["judge"], ["judge", "a", "b"], ["jugde", "a"], ["judge", "a", "--jsn"]]
)
def test_wrong_usage_is_64_never_argparses_own_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 64 and "usage:" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_read_permission_is_70(packages, tmp_path, capsys):
    copy = shutil.copytree(packages["pass"], tmp_path / "copy")
    (copy / "run.json").chmod(0)
    code, out, err = run(capsys, "judge", copy)
    assert (code, out) == (70, "") and "Permission denied" in err


def test_an_unreadable_file_is_70_and_no_verdict(packages, monkeypatch, capsys):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", "run.json")

    monkeypatch.setattr("oracle.source.Folder.read", refuse)
    code, out, err = run(capsys, "judge", packages["pass"])
    assert (code, out, err) == (70, "", "oracle: cannot read run.json: Permission denied\n")


def test_a_fault_of_the_oracle_is_70_and_no_verdict(packages, monkeypatch, capsys):
    monkeypatch.setattr("oracle.judge.decode_documents", lambda files: 1 / 0)
    code, out, err = run(capsys, "judge", packages["pass"])
    assert (code, out) == (70, "") and "this is no verdict" in err


# -- archives ----------------------------------------------------------------------------------------
def members(package, prefix=""):
    return [
        (prefix + str(p.relative_to(package)), p.read_bytes())
        for p in sorted(package.rglob("*"))
        if p.is_file()
    ]


@pytest.mark.parametrize("prefix", ["", "./", "top/"])
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_archives_are_judged_like_folders_and_nothing_is_extracted(packages, tmp_path, capsys, prefix, mode):
    archive = tmp_path / "package.tar"
    with tarfile.open(archive, mode) as out:
        for name, data in members(packages["fail"], prefix):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    code, out, _ = run(capsys, "judge", archive, "--json")
    folder = json.loads(run(capsys, "judge", packages["fail"], "--json")[1])
    found = json.loads(out)
    assert code == 1 and {**found, "package": 0} == {**folder, "package": 0}
    assert found["package"]["id"] == packages["fail"].name
    assert list(tmp_path.iterdir()) == [archive]


def test_an_archive_in_a_folder_of_another_digest_is_refused(packages, tmp_path, capsys):
    archive = tmp_path / "package.tar"
    archive.write_bytes(tar_of(members(packages["pass"], "0" * 64 + "/")))
    code, out, _ = run(capsys, "judge", archive)
    assert code == 2 and "P16" in out


def test_a_link_in_an_archive_is_refused(packages, tmp_path, capsys):
    archive = tmp_path / "package.tar"
    with tarfile.open(archive, "w") as out:
        for name, data in members(packages["pass"]):
            info = tarfile.TarInfo(name)
            if name == "run.json":
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
                out.addfile(info)
            else:
                info.size = len(data)
                out.addfile(info, io.BytesIO(data))
    code, out, _ = run(capsys, "judge", archive)
    assert code == 2 and "P12" in out


# -- alone ---------------------------------------------------------------------------------------------
@pytest.fixture
def alone(packages, tmp_path):
    """A folder that holds nothing but oracle/ and a package."""
    shutil.copytree(ROOT / "oracle", tmp_path / "oracle", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(packages["pass"], tmp_path / packages["pass"].name)
    return tmp_path, packages["pass"].name


@pytest.mark.parametrize("command", [["-I", "-S", "oracle"], ["-S", "-m", "oracle"]])
def test_judges_alone_and_isolated(alone, command):
    folder, package = alone
    done = subprocess.run(
        [sys.executable, *command, "judge", package], cwd=folder, capture_output=True, text=True, env={}
    )
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.endswith("verdict   pass\n")


def test_a_module_beside_oracle_shadows_nothing(alone):
    folder, package = alone
    for name in ("json", "hashlib", "codes", "argparse"):
        (folder / f"{name}.py").write_text("raise SystemExit(0)\n")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "oracle", "judge", package], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.endswith("verdict   pass\n")


def test_oracle_imports_the_standard_library_and_itself_only():
    for path in sorted((ROOT / "oracle").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            roots = {name.split(".")[0] for name in names}
            assert roots <= {"oracle", "__future__"} | sys.stdlib_module_names, (path.name, roots)


# -- the other commands -----------------------------------------------------------------------------------
def test_codes_lists_every_code_with_clause_and_consequence(capsys):
    code, out, _ = run(capsys, "codes")
    assert code == 0 and len(out.splitlines()) == len(CODES)
    assert out.splitlines()[0].split(maxsplit=2) == list(CODES["P01"])[:2] + [CODES["P01"].clause]
    assert json.loads(run(capsys, "codes", "--json")[1])[0]["code"] == "P01"


def test_explain_tells_let_then_however_and_eight_lines_like_the_articles(packages, capsys):
    code, out, _ = run(capsys, "explain", packages["fail"])
    story = next(part for part in out.split("\n\n\n") if "treatment-durable" in part).split(
        "treatment-durable: "
    )[1]
    assert code == 1
    paragraph = story.split("\n\n")[1]
    assert paragraph.startswith("Let ref-poc-001 be an approved refund of BRL 100.00")
    assert "Then attempt 1 was dispatched (event 6), the provider committed txn-1 (event 8)" in paragraph
    assert (
        "However, the ledger holds 2 successful transactions (txn-1, txn-2), BRL 200.00 in all" in paragraph
    )
    lines = [line.split()[1:3] for line in story.split("\n\n")[2].splitlines()]
    expected = [
        ["caller", "dispatch_started"],
        ["provider", "provider_commit_confirmed"],
        ["caller", "caller_timeout_recorded"],
        ["release", "release_signalled"],
        ["provider", "response_released"],
        ["caller", "dispatch_started"],
        ["provider", "provider_commit_confirmed"],
        ["caller", "response_received"],
        ["caller", "request_finished"],
    ]
    assert [line for line in lines if line[0] != "durable"] == expected
    durable = [line[1] for line in lines if line[0] == "durable"]
    assert durable == ["StepStarted", "StepFailed", "StepStarted", "StepSucceeded", "ExecutionSucceeded"]


def test_compare_is_eligible_for_equal_cells_and_says_why_not(packages, tmp_path, capsys):
    assert run(capsys, "compare", packages["fail"])[0] == 0
    code, out, _ = run(capsys, "compare", packages["pass"])
    assert code == 2 and "there are not two variants to compare" in out
    code, out, _ = run(capsys, "compare", packages["fail"], packages["fail"])
    assert code == 2 and "trial treatment-durable was given 2 times" in out
    other = package_with(treatment)
    other.docs["environment.json"]["functions"]["provider"] = {"botocore": "1.43.11"}
    code, out, _ = run(capsys, "compare", packages["fail"], other.write(tmp_path))
    assert code == 2 and "botocore is not one and the same" in out and "not run equally often" in out
    assert json.loads(run(capsys, "compare", packages["pass"], "--json")[1])["eligible"] is False


def test_compare_refuses_an_invalid_trial(packages, tmp_path, capsys):
    package = four_cells()
    package.docs["trials/control-durable/trial.json"]["driver"]["sends"] = 2
    code, out, _ = run(capsys, "compare", package.write(tmp_path))
    assert code == 2 and "trial control-durable is invalid" in out


def test_every_citation_is_checked(packages, tmp_path, capsys):
    results = tmp_path / "results.json"
    results.write_text(run(capsys, "cite", packages["fail"])[1])
    code, out, _ = run(capsys, "results", packages["fail"], results)
    assert (code, out) == (
        0,
        f"{len(json.loads(results.read_text())['values'])} citations and the verdict hold\n",
    )
    good = json.loads(results.read_text())
    assert {"name": "protocol.approved_minor", "value": 10_000}.items() <= good["values"][0].items()
    for change in WRONG:
        document = json.loads(results.read_text())
        change(document)
        (tmp_path / "wrong.json").write_text(json.dumps(document))
        code, out, _ = run(capsys, "results", packages["fail"], tmp_path / "wrong.json", "--json")
        assert code == 2 and len(json.loads(out)["wrong"]) == 1, out
    code, out, _ = run(capsys, "results", packages["pass"], results)
    assert code == 2 and "package: expected" in out


WRONG = (
    lambda d: d["values"][0].update(value=10_001),
    lambda d: d["values"][0].update(value=True),
    lambda d: d["values"][0].update(value="10000"),
    lambda d: d["values"][0].update(pointer="/refund/nothing"),
    lambda d: d["values"][0].update(pointer="refund"),
    lambda d: d["values"][3].update(pointer="/9" + d["values"][3]["pointer"]),
    lambda d: d["values"][3].update(pointer=d["values"][3]["pointer"].replace("/Items/0/", "/Items/-1/")),
    lambda d: d["values"][0].update(path="run.json"),
    lambda d: d["values"][0].update(sha256="0" * 64),
    lambda d: d["package"].update(id="0" * 64),
    lambda d: d["verdict"].update(verdict="pass"),
    lambda d: d["verdict"]["trials"][2].update(ledger_transactions=1),
    lambda d: d["verdict"]["trials"].pop(),
    lambda d: d.update(values=[]),
)


def test_a_results_file_that_is_none_is_64(packages, tmp_path, capsys):
    path = tmp_path / "results.json"
    for text in ("", "{}", '{"format":1,"format":2}', '{"a":1.5}', "[]"):
        path.write_text(text)
        code, _, err = run(capsys, "results", packages["pass"], path)
        assert code == 64 and "expected a results.json" in err
    assert run(capsys, "results", packages["pass"], tmp_path / "none.json")[0] == 64


def test_a_package_that_is_called_by_its_digest_is_found_by_it(packages):
    assert all(len(path.name) == 64 for path in packages.values())
    assert write(four_cells().render(), packages["fail"].parent) == packages["fail"]
