"""What is seen of a run: on a live terminal, in plain lines, and from another terminal."""

import io
import json
import os
import pty
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console

from runner.cli import main
from runner.commands import watch
from runner.errors import EXIT_OK, EXIT_USAGE, LabError
from runner.live import picture as live
from runner.live.picture import Picture, TrialRow
from runner.live.progress import Progress
from runner.live.view import render

PROJECT = Path(__file__).resolve().parents[2]
RUN = "20261129T120000Z-abc123"
COLOUR = re.compile(r"\x1b\[[\d;]*3[1-7][\d;]*m")
LIMIT_S = 60


class Clock:
    """A clock that moves only when something sleeps; `then` runs after each sleep."""

    def __init__(self, then=lambda: None):
        self.ms, self.then = 1_790_000_000_000, then

    def now_ms(self):
        return self.ms

    def monotonic(self):
        return self.ms / 1000

    def sleep(self, seconds):
        self.ms += int(seconds * 1000)
        self.then()


@dataclass
class Queues:
    lines: list = field(default_factory=list)


@dataclass
class Trial:
    """As much of runner.trials.trial.Trial as is shown."""

    trial_id: str = f"{RUN}-t1"
    run_id: str = RUN
    scenario: str = "COMMIT_THEN_TIMEOUT"
    variant: str = "conventional"
    ended_because: str = "quiescent"
    error: str | None = None
    queues: Queues | None = None


def sample(read, visible, in_flight):
    return {
        "read": read,
        "response": {
            "Attributes": {
                "ApproximateNumberOfMessages": str(visible),
                "ApproximateNumberOfMessagesNotVisible": str(in_flight),
                "ApproximateNumberOfMessagesDelayed": "0",
            }
        },
    }


def text_of(picture, width=80, **console):
    out = io.StringIO()
    Console(file=out, width=width, **console).print(render(picture, picture.began_at_ms + 61_000))
    return out.getvalue()


def waiting_picture(**changes):
    row = TrialRow("COMMIT_THEN_TIMEOUT", "conventional", "SQS redelivery in 41 s", 12, 0, 1, 0)
    event = f"{'12.0 s':>9}  t1    9 caller   caller_timeout_recorded attempt 1"
    return Picture(1_790_000_000_000, RUN, trials={f"{RUN}-t1": row}, events=[event], **changes)


@pytest.fixture
def run_folder(tmp_path, monkeypatch):
    """An empty folder of a run, where the runner looks for runs."""
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path))
    folder = tmp_path / RUN
    folder.mkdir()
    return folder


def test_eighty_columns_hold_trial_wait_queue_and_dlq():
    lines = [line.rstrip() for line in text_of(waiting_picture()).splitlines()]
    assert lines[-3].strip() == f"{RUN}  1:01"
    assert lines[-2].split() == ["Trial", "Scenario", "Variant", "Events", "Queue", "DLQ", "Now"]
    assert lines[-1].split(None, 6) == [
        "t1",
        "COMMIT_THEN_TIMEOUT",
        "conventional",
        "12",
        "0+1",
        "0",
        "SQS redelivery in 41 s",
    ]
    assert "caller_timeout_recorded attempt 1" in lines[0]


def test_no_color_is_respected(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert COLOUR.search(text_of(waiting_picture(), force_terminal=True))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not COLOUR.search(text_of(waiting_picture(), force_terminal=True))


def test_a_picture_survives_its_file_and_keeps_the_numbers_of_its_lines(tmp_path):
    picture = waiting_picture()
    for number in range(live.LINES_KEPT + 20):
        picture.add_line(f"line {number}")
    picture.save(tmp_path)
    assert live.load(tmp_path) == picture
    assert (picture.first_line, picture.lines[0]) == (20, "line 20")
    assert [path.name for path in tmp_path.iterdir()] == [live.NAME]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format":"suc-live","version":2}'])
def test_what_is_no_picture_is_none(tmp_path, content):
    (tmp_path / live.NAME).write_bytes(content)
    assert live.load(tmp_path) is None


def test_progress_keeps_plain_lines_and_the_same_picture_for_others(run_folder):
    out, clock, trial = io.StringIO(), Clock(), Trial(queues=Queues())
    with Progress(Console(file=out, width=200), clock) as progress:
        progress.say("warming")
        progress.started(trial)
        trial.queues.lines += [sample("queue_source", 0, 1), sample("queue_dlq", 0, 0)]
        progress.note(trial, {"seq": 6, "source": "caller", "type": "dispatch_started", "attempt": 1})
        progress.waiting(trial, "SQS redelivery in 41 s")
        progress.waiting(trial, "SQS redelivery in 40 s")
        seen = live.load(run_folder)
        progress.ended(trial)
    row = seen.trials[trial.trial_id]
    assert (row.now, row.events, row.visible, row.in_flight, row.dead) == (
        "SQS redelivery in 40 s",
        1,
        0,
        1,
        0,
    )
    assert not seen.ended and live.load(run_folder).ended
    shown = out.getvalue().splitlines()
    assert shown == live.load(run_folder).lines
    label = "    0.0 s  COMMIT_THEN_TIMEOUT/conventional: "
    assert shown[1:] == [
        f"{label}started as {trial.trial_id}",
        f"{label}  6 caller   dispatch_started attempt 1",
        f"{label}waiting for SQS redelivery in 41 s",
        f"{label}ended, quiescent",
    ]


def test_a_run_without_a_folder_leaves_no_picture(tmp_path, monkeypatch):
    monkeypatch.setenv("SUC_RUNS_DIR", str(tmp_path))
    with Progress(Console(file=io.StringIO()), Clock(), quiet=True) as progress:
        progress.started(Trial())
    assert list(tmp_path.iterdir()) == []


def test_a_watcher_that_is_no_terminal_prints_every_line_once(run_folder):
    picture = waiting_picture()
    picture.lines = ["one", "two"]
    picture.save(run_folder)
    steps = iter((["three"], [], ["four", "five"]))

    def then():
        for line in next(steps, ()):
            picture.add_line(line)
        picture.ended = len(picture.lines) == 5
        picture.save(run_folder)

    out = io.StringIO()
    assert watch.watch(run_folder, Console(file=out), Clock(then)) == os.getpid()
    assert out.getvalue().split() == ["one", "two", "three", "four", "five"]


def test_a_run_whose_process_is_gone_is_said_to_be_left(run_folder):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    waiting_picture(pid=gone.pid).save(run_folder)
    with pytest.raises(LabError, match="was left by its process without an end"):
        watch.watch(run_folder, Console(file=io.StringIO()), Clock())


def test_the_newest_run_is_watched_unless_one_is_named(run_folder):
    older = run_folder.with_name("20261129T110000Z-def456")
    older.mkdir()
    for folder in (run_folder, older):
        waiting_picture().save(folder)
    assert watch.find(run_folder.parent, None) == run_folder
    assert watch.find(run_folder.parent, older.name) == older


@pytest.mark.parametrize(("named", "more"), [([], True), ([RUN], False)], ids=["newest", "named"])
def test_a_run_that_ended_before_it_was_watched_is_said_to_be_over(run_folder, capsys, named, more):
    waiting_picture(ended=True).save(run_folder)
    result = {"protocol": "study-1", "target": "local", "grade": "emulated", "trials": []}
    (run_folder / "result.json").write_text(json.dumps(result))
    assert main(["watch", *named]) == EXIT_OK
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith(f"run {RUN} has already ended; this is what it showed")
    assert ("a run shows here once its cloud and stack are ready" in first) is more


def test_there_must_be_a_run_to_watch(run_folder, capsys):
    assert main(["watch"]) == EXIT_USAGE
    assert "there is no run to watch" in capsys.readouterr().err
    assert main(["watch", "nope"]) == EXIT_USAGE


@pytest.mark.slow
@pytest.mark.parametrize("no_color", [False, True], ids=["colour", "NO_COLOR"])
def test_a_real_terminal_shows_the_run_live_and_then_its_result(run_folder, no_color):
    picture = waiting_picture()
    picture.save(run_folder)
    result = {
        "protocol": "study-1",
        "target": "local",
        "grade": "emulated",
        "trials": [
            {
                "scenario": "COMMIT_THEN_TIMEOUT",
                "variant": "conventional",
                "ledger_transactions": 2,
                "refunded_minor": 20000,
                "currency": "BRL",
                "verdict": "fail",
                "validity": "valid",
                "processing": "SUCCEEDED",
                "effect_knowledge": "UNKNOWN",
                "correct_completion": False,
            }
        ],
    }
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "PYTHONDONTWRITEBYTECODE")}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    environment |= {"NO_COLOR": "1"} if no_color else {}
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "runner", "watch", RUN],
        cwd=PROJECT,
        env=environment,
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    screen = _Screen(master)
    screen.wait_for("SQS redelivery in 41 s")
    (run_folder / "result.json").write_text(json.dumps(result))
    picture.ended = True
    picture.save(run_folder)
    assert process.wait(LIMIT_S) == EXIT_OK
    screen.wait_for("R$ 200.00")
    assert bool(COLOUR.search(screen.text)) is not no_color
    assert "\x1b[?25l" in screen.text and "\x1b[?25h" in screen.text  # the cursor was hidden and given back


class _Screen:
    """Collects what a terminal was sent."""

    def __init__(self, master: int):
        self.master, self.text = master, ""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                self.text += os.read(self.master, 65536).decode(errors="replace")
            except OSError:  # the other side has closed
                return

    def wait_for(self, text: str) -> None:
        limit = time.monotonic() + LIMIT_S
        while text not in self.text:
            assert time.monotonic() < limit, f"expected {text!r} on the terminal, found {self.text[-2000:]!r}"
            time.sleep(0.02)


@pytest.mark.parametrize("row", ["[]", '{"t": {"party": 1}}', '{"t": {}}', '{"t": 1}'])
def test_a_picture_by_other_hands_is_none(tmp_path, row):
    (tmp_path / live.NAME).write_text(f'{{"format": "suc-live", "version": 1, "trials": {row}}}')
    assert live.load(tmp_path) is None
