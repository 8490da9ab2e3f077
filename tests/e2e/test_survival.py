"""The runner is killed with SIGKILL at every state transition, and resume finishes or closes each run.

One local cloud for all points, so the stack outlives every runner. The kill table (point -> what resume
did) is printed and kept beside the runs: run this file with `-s` to see it as it grows.
"""

import hashlib
import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from oracle.judge import judge_path
from runner.local import launch
from runner.local.cloud import Cloud
from runner.local.deploy import deploy
from runner.names import COMMIT_THEN_TIMEOUT, CONTROL, CONVENTIONAL, DURABLE, Output, stack_name
from runner.runs import state
from runner.runs.state import CRASH_AT, State
from runner.targets.assembly import synthesise
from tests.e2e.lab import PROJECT, REHEARSAL, RUN_LIMIT_S, CommandLine, events

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SIGKILLED = -signal.SIGKILL

# How a run may end after its runner was killed and resume has been there.
NOTHING = "closed without a package"
PROBE_ONLY = "frozen, no trial was begun"
CUT_OFF = "frozen, the trial interrupted"
WHOLE = "finished as if nothing had happened"


@dataclass(frozen=True)
class Point:
    """Where the runner is killed, what it ran, and how resume must have ended it.

    `then` kills one resume after the other as well, each further on.
    """

    at: str
    end: str
    scenario: str = CONTROL
    variant: str = CONVENTIONAL
    then: tuple[str, ...] = ()

    @property
    def cell(self) -> str:
        plain = (self.scenario, self.variant) == (CONTROL, CONVENTIONAL)
        return "" if plain else f" {self.scenario}/{self.variant}"

    def __str__(self) -> str:
        return self.at + self.cell + (", then every resume" if self.then else "")


# One run whose every resume dies, from one state to the next, until there is nothing left to die in.
EVERY_RESUME = (
    "closing",
    "closed:before",
    "closed",
    "collecting",
    "freezing",
    "publishing:before",
    "publishing",
    "frozen:before",
    "judging",
    "judged",
    "ended:before",
)

# `:2` is the trial's, where the probe has been in that state before.
POINTS = (
    Point("created:before", NOTHING),
    Point("created", PROBE_ONLY),
    Point("leasing", PROBE_ONLY),
    Point("leased", PROBE_ONLY),
    Point("warming", PROBE_ONLY),
    Point("warmed", PROBE_ONLY),
    Point("trial_opening", PROBE_ONLY),
    Point("trial_opened", PROBE_ONLY),
    Point("armed", PROBE_ONLY),
    Point("probe_invoking:before", PROBE_ONLY),
    Point("probe_invoking", PROBE_ONLY),
    Point("probe_invoked", PROBE_ONLY),
    Point("closing", PROBE_ONLY),
    Point("closed", PROBE_ONLY),
    Point("trial_opening:2", CUT_OFF),
    Point("trial_opened:2", CUT_OFF),
    Point("armed:before:2", CUT_OFF, COMMIT_THEN_TIMEOUT, DURABLE),
    Point("armed:2", CUT_OFF, COMMIT_THEN_TIMEOUT, CONVENTIONAL),
    Point("send_started", CUT_OFF),
    Point("sending", CUT_OFF),
    Point("sent:before", CUT_OFF),
    Point("sent:before", CUT_OFF, COMMIT_THEN_TIMEOUT, DURABLE),
    Point("sent", WHOLE),
    Point("waiting", WHOLE, COMMIT_THEN_TIMEOUT, CONVENTIONAL),
    Point("waiting", WHOLE, CONTROL, DURABLE),
    Point("waiting", WHOLE, then=EVERY_RESUME),
    Point("closing:2", WHOLE),
    Point("closed:2", WHOLE),
    Point("collecting", WHOLE),
    Point("publishing", WHOLE),
    Point("frozen", WHOLE),
    Point("judged", WHOLE),
)

KILL_TABLE: list[str] = []


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> CommandLine:
    """A command line with a cloud of its own that stays up, and the stack deployed on it."""
    lab = CommandLine(tmp_path_factory.mktemp("survival"))
    up = json.loads(lab.call("runner", "local", "up", "--json").stdout)
    cloud = Cloud(launch.Running(**{k: up[k] for k in launch.Running.__dataclass_fields__}))
    deploy(cloud, synthesise(REHEARSAL)[0], stack_name(REHEARSAL))
    yield lab
    (lab.home / "kill-table.txt").write_text("\n".join(KILL_TABLE) + "\n")
    lab.call("runner", "local", "down")


def start(lab, scenario=CONTROL, variant=CONVENTIONAL, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "runner", "run", "--protocol", REHEARSAL, "--target", "local"]
        + ["--scenario", scenario, "--variant", variant],
        cwd=PROJECT,
        env=lab.environment(**more),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def runs_of(lab) -> set[Path]:
    return set((lab.home / "runs").glob("*/"))


def kill_at(lab, point) -> Path:
    """Run until the point, be killed there, and return the run's folder."""
    before = runs_of(lab)
    process = start(lab, point.scenario, point.variant, **{CRASH_AT: point.at})
    _, told = process.communicate(timeout=RUN_LIMIT_S)
    assert process.returncode == SIGKILLED, told
    (folder,) = runs_of(lab) - before
    return folder


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_a_killed_run_is_finished_or_closed(home, point):
    folder = kill_at(home, point)
    published_before = published(folder)
    assert_no_half_written_package(folder)
    for at in point.then:
        killed = home.call("runner", "resume", folder.name, **{CRASH_AT: at})
        assert killed.returncode == SIGKILLED, f"{at}: {killed.stderr}"
        note(f"    ... and resume at {at}", "killed again", state.read(folder)[-1]["state"])
        assert_no_half_written_package(folder)
    began = time.monotonic()
    done = home.call("runner", "resume", folder.name, "--json")
    took = time.monotonic() - began
    assert done.returncode in (0, 2), done.stderr
    told = describe(folder, done, published_before)
    note(point.at + point.cell, told[0], f"{told[1]}  ({took:.1f} s)")
    assert told[0] == point.end, done.stderr
    last = state.read(folder)[-1]["state"]
    assert last == (State.ABANDONED if point.end == NOTHING else State.ENDED)


def note(at, end, words):
    KILL_TABLE.append(f"{at:48} {end:38} {words}")
    print("\n" + KILL_TABLE[-1])


def published(folder) -> set[str]:
    return {path.name for path in folder.glob("*/") if len(path.name) == 64}


def assert_no_half_written_package(folder):
    """What carries a package's name is whole; what is not whole carries no such name."""
    for name in published(folder):
        assert hashlib.sha256((folder / name / "index.json").read_bytes()).hexdigest() == name
        assert judge_path(folder / name).integrity == []


def describe(folder, done, published_before) -> tuple[str, str]:
    """Say how the run ended, having checked that nothing about it is false."""
    assert published_before <= published(folder), "a published package has vanished"
    if not published(folder):
        assert done.returncode == 2
        return NOTHING, state.read(folder)[-1]["reason"]
    (package,) = [folder / name for name in published(folder)]
    assert not (folder / ".partial").exists()
    assert_no_half_written_package(folder)
    result = json.loads(done.stdout)
    assert result["package"]["id"] == package.name
    assert_one_message_at_most(package)
    if not result["trials"]:
        assert (result["verdict"], done.returncode) == ("indeterminate", 2)
        return PROBE_ONLY, f"probe {result['probe']}"
    (trial,) = result["trials"]
    words = f"{trial['verdict']}, {trial['validity']}, {trial['ledger_transactions']} effects"
    because = json.loads((package / "trials" / trial["trial_id"] / "trial.json").read_text())["ended_because"]
    if because == "interrupted":
        assert trial["verdict"] != "pass" and done.returncode == 2
        return CUT_OFF, words
    assert (because, trial["validity"], done.returncode) == ("quiescent", "valid", 0)
    assert trial["verdict"] == ("pass" if trial["scenario"] == CONTROL else "fail")
    return WHOLE, words


def assert_one_message_at_most(package):
    run = json.loads((package / "run.json").read_text())
    for trial in run["trials"]:
        found = events(package, trial["trial_id"])
        assert sum(event["type"] == "message_send_started" for event in found) <= 1
        assert sum(event["type"] == "message_sent" for event in found) <= 1
        assert len({event["delivery_id"] for event in found if event["type"] == "delivery_received"}) <= 1
        assert sum(event["type"] == "trial_closed" for event in found) <= 1


def test_a_run_that_has_ended_is_not_resumed(home):
    ended = sorted(folder.name for folder in runs_of(home))[-1]
    for arguments in ((), (ended,), ("no-such-run",)):
        done = home.call("runner", "resume", *arguments)
        assert done.returncode == 64 and "resume" in done.stderr, arguments


def test_at_least_25_points_are_covered_and_every_state_is_one_of_them():
    assert len({(point.at, point.scenario, point.variant) for point in POINTS}) >= 25
    killed_in = {at.split(":")[0] for point in POINTS for at in (point.at, *point.then)}
    assert killed_in == set(State.all()) - {State.REFUSED, State.ABANDONED, State.RESUMED}


def test_ctrl_c_ends_the_trial_as_interrupted_and_freezes_it(home):
    before = runs_of(home)
    process = start(home, COMMIT_THEN_TIMEOUT, CONVENTIONAL)
    for line in process.stderr:
        if "caller_timeout_recorded" in line:
            break
    process.send_signal(signal.SIGINT)
    told = process.stderr.read()
    assert process.wait(RUN_LIMIT_S) == 2, told
    (folder,) = runs_of(home) - before
    assert [entry["state"] for entry in state.read(folder)][-1] == State.ENDED
    (name,) = published(folder)
    (trial,) = json.loads((folder / "result.json").read_text())["trials"]
    record = json.loads((folder / name / "trials" / trial["trial_id"] / "trial.json").read_text())
    assert record["ended_because"] == "interrupted"
    assert trial["verdict"] != "pass"
    wait_until_queues_are_at_rest(home)


def wait_until_queues_are_at_rest(lab):
    """The interrupted trial's message is delivered again after its visibility timeout."""
    cloud = Cloud(launch.Running(**json.loads((lab.home / "state" / "cloud.json").read_text())))
    stack = cloud.client("cloudformation").describe_stacks(StackName=stack_name(REHEARSAL))["Stacks"][0]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    until = time.monotonic() + RUN_LIMIT_S
    while time.monotonic() < until:
        found = cloud.client("sqs").get_queue_attributes(
            QueueUrl=outputs[Output.CONVENTIONAL_QUEUE_URL], AttributeNames=["All"]
        )["Attributes"]
        if found["ApproximateNumberOfMessages"] == found["ApproximateNumberOfMessagesNotVisible"] == "0":
            return
        time.sleep(0.5)
    pytest.fail("the interrupted trial's message is still moving")


def test_a_second_runner_on_one_stack_is_refused_until_the_first_has_ended(home):
    first = start(home)
    for line in first.stderr:
        if "warming every function" in line:
            break
    second = home.call("runner", "run", "--protocol", REHEARSAL, "--target", "local", "--scenario", CONTROL)
    assert second.returncode == 64
    assert "another run holds this stack" in second.stderr and "Traceback" not in second.stderr
    first.communicate(timeout=RUN_LIMIT_S)
    assert first.returncode == 0
    third = home.call(
        *("runner", "run", "--protocol", REHEARSAL, "--target", "local"),
        *("--scenario", CONTROL, "--variant", DURABLE, "--json"),
    )
    assert third.returncode == 0, third.stderr


def test_a_run_that_still_lives_is_not_resumed(home):
    before = runs_of(home)
    process = start(home)
    for line in process.stderr:
        if "warming every function" in line:
            break
    (folder,) = runs_of(home) - before
    done = home.call("runner", "resume", folder.name)
    process.communicate(timeout=RUN_LIMIT_S)
    assert done.returncode == 64 and "still running" in done.stderr
    assert process.returncode == 0


def test_a_run_whose_stack_is_gone_is_closed_and_the_stack_can_be_deleted_after_a_kill(home):
    """Last of all: it deletes the stack that the other tests stand on."""
    folder = kill_at(home, Point("waiting", NOTHING))
    cloud = Cloud(launch.Running(**json.loads((home.home / "state" / "cloud.json").read_text())))
    client = cloud.client("cloudformation")
    client.delete_stack(StackName=stack_name(REHEARSAL))
    client.get_waiter("stack_delete_complete").wait(
        StackName=stack_name(REHEARSAL), WaiterConfig={"Delay": 1, "MaxAttempts": RUN_LIMIT_S}
    )
    done = home.call("runner", "resume", folder.name)
    assert done.returncode == 2
    assert state.read(folder)[-1]["state"] == State.ABANDONED
    assert "the stack it ran on is gone" in done.stderr
    assert published(folder) == set()
