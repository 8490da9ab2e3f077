"""State file, sweep of dead guards, and finding uv; no engine is started."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runner import cli
from runner.errors import LabError
from runner.local import guard, launch, ministack
from runner.local.clients import make_client
from tests.local.processes import alive, eventually


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Give the sweep a temporary folder and a state folder of its own."""
    monkeypatch.setattr(launch.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("SUC_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    return tmp_path


@pytest.fixture
def living(temporary):
    """Hold a guard's folder as a living guard does."""
    home, fd = guard.make_home(launch.HOME_PREFIX)
    yield home
    launch.os.close(fd)


def dead_home(folder: Path) -> Path:
    home = folder / f"{launch.HOME_PREFIX}dead"
    home.mkdir()
    (home / "lock").touch()
    (home / "worker").mkdir()
    return home


def running(home: Path) -> launch.Running:
    return launch.Running("http://127.0.0.1:1", 1, str(home), True, "logs", {})


def test_the_sweep_removes_a_dead_guards_folder_and_spares_a_living_ones(temporary, living):
    dead = dead_home(temporary)
    foreign = temporary / f"{launch.HOME_PREFIX}without-lock"
    foreign.mkdir()
    assert launch.sweep() == [dead]
    assert not dead.exists()
    assert living.exists()
    assert foreign.exists()
    assert launch.sweep() == []


@pytest.mark.skipif(sys.platform != "linux", reason="walks /proc")
def test_the_sweep_kills_a_worker_that_its_dead_guard_left(temporary):
    dead = dead_home(temporary)
    worker = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], env={"TMPDIR": str(dead)}
    )
    assert eventually(lambda: launch._processes_of(dead) == [worker.pid])
    launch.sweep()
    assert worker.wait(60) == -9
    assert alive([worker.pid]) == []


def test_a_state_file_counts_only_while_its_guard_holds_the_lock(temporary, living):
    assert launch.find() is None
    launch.remember(running(living))
    assert launch.find() == running(living)
    launch.remember(running(dead_home(temporary)))
    assert launch.find() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"endpoint": "x"}'])
def test_a_damaged_state_file_is_no_cloud(temporary, text):
    (temporary / "state" / "cloud.json").write_text(text)
    assert launch.find() is None


def test_down_without_a_cloud_removes_a_stale_state_file(temporary, capsys):
    launch.remember(running(dead_home(temporary)))
    assert cli.main(["local", "down"]) == 0
    assert not (temporary / "state" / "cloud.json").exists()
    assert capsys.readouterr().out == ""


def test_up_with_another_iam_than_the_running_one_is_refused(temporary, living, capsys):
    launch.remember(running(living))
    assert cli.main(["local", "up", "--iam", "off"]) == 64
    told = capsys.readouterr()
    assert told.out == ""
    assert "expected: --iam off" in told.err
    assert "found:    --iam on at http://127.0.0.1:1" in told.err


def test_a_second_up_prints_the_same_endpoint(temporary, living, capsys):
    launch.remember(running(living))
    assert cli.main(["local", "up", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["endpoint"] == "http://127.0.0.1:1"


@pytest.mark.parametrize("argv", [[], ["sideways"], ["up", "--iam", "maybe"]])
def test_a_wrong_command_line_ends_with_64(argv, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["local", *argv])
    assert ended.value.code == 64
    assert capsys.readouterr().out == ""


def test_without_uv_the_message_names_the_command_that_installs_it(monkeypatch):
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr(ministack.shutil, "which", lambda _name: None)
    monkeypatch.setattr(ministack.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(LabError) as missing:
        ministack.find_uv()
    assert missing.value.next_step == "pip install uv"


def test_uv_is_found_where_uv_run_names_it_then_on_the_path_then_as_a_module(monkeypatch, tmp_path):
    tool = tmp_path / "uv"
    tool.write_text("")
    tool.chmod(0o755)
    monkeypatch.setenv("UV", str(tool))
    monkeypatch.setattr(ministack.shutil, "which", lambda _name: sys.executable)
    monkeypatch.setattr(ministack.importlib.util, "find_spec", lambda _name: object())
    assert ministack.find_uv() == [str(tool)]
    monkeypatch.setenv("UV", str(tmp_path / "gone"))
    assert ministack.find_uv() == [sys.executable]
    monkeypatch.setattr(ministack.shutil, "which", lambda _name: None)
    assert ministack.find_uv() == [sys.executable, "-m", "uv"]


def test_a_first_use_is_announced_and_a_failure_gives_uvs_own_words(monkeypatch):
    notes = []
    monkeypatch.setattr(ministack, "find_uv", lambda: ["uv"])
    monkeypatch.setattr(
        ministack.subprocess,
        "run",
        lambda command, **_: subprocess.CompletedProcess(command, 2, "", "note\nerror: no index"),
    )
    with pytest.raises(LabError, match="error: no index"):
        ministack.find_python(notes.append)
    assert notes == [f"fetching MiniStack {ministack.VERSION} (first use) ..."]


def test_the_engines_see_no_aws_setting_of_the_user(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "real")
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    kept = launch._environment()
    assert {k: v for k, v in kept.items() if k.startswith(("AWS_", "PYTHON"))} == {
        "AWS_EC2_METADATA_DISABLED": "true"
    }
    assert kept["PATH"] == launch.os.environ["PATH"]


@pytest.mark.parametrize("service", ["lambda", "sqs", "dynamodb", "cloudformation", "s3"])
def test_d13_only_what_is_idempotent_is_repeated_on_the_local_cloud_too(service, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "7")
    config = make_client("http://127.0.0.1:1", service).meta.config
    once = service in ("lambda", "sqs")
    assert config.retries == {"mode": "standard", "total_max_attempts": 1 if once else 4}
