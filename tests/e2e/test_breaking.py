"""Things broken on purpose: the lab must notice, and nothing broken may ever pass."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

from runner import protocol as protocols
from runner.clock import SystemClock
from runner.live.progress import Progress
from runner.local import launch
from runner.local.cloud import Cloud
from runner.local.deploy import deploy
from runner.names import Output, stack_name
from runner.runs.result import document, exit_code
from runner.runs.run import Run
from runner.targets.assembly import synthesise
from runner.targets.target import lab_from_stack
from tests.e2e.lab import PROJECT, REHEARSAL, RUN_LIMIT_S, events, package_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

P = protocols.load(REHEARSAL)


@pytest.fixture(scope="module")
def deployed(tmp_path_factory):
    """The rehearsal's stack on a local cloud of this module's own."""
    launched = launch.start(iam=True, note=print)
    with Cloud(launched.running, launched) as cloud:
        name = stack_name(REHEARSAL)
        deploy(cloud, synthesise(REHEARSAL)[0], name)
        described = cloud.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        yield lab_from_stack("local", described, cloud.client, cloud.account, cloud.versions)


def execute(kind, lab, tmp_path, scenario, variant):
    """Run one cell with a Run of the given kind; return its result and exit code."""
    clock = SystemClock()
    run = kind(
        lab,
        P,
        P.cells((scenario,), (variant,)),
        False,
        Progress(Console(stderr=True), clock, quiet=True),
        clock,
        threading.Event(),
        runs_dir=tmp_path,
    )
    package, verdict = run.execute()
    result = document(run, package, verdict)
    return result, exit_code(run, result)


class SilentRelease(Run):
    """After a good probe, the release controller's filter is changed so that it never fires."""

    def _run_trials(self):
        client = self.lab.client("lambda")
        name = self.lab.outputs[Output.RELEASE_FUNCTION]
        (mapping,) = [
            m
            for m in client.list_event_source_mappings()["EventSourceMappings"]
            if m["FunctionArn"].endswith(f":function:{name}")
        ]
        before = mapping["FilterCriteria"]
        never = json.dumps({"eventName": ["NEVER"]})
        client.update_event_source_mapping(
            UUID=mapping["UUID"], FilterCriteria={"Filters": [{"Pattern": never}]}
        )
        try:
            super()._run_trials()
        finally:
            client.update_event_source_mapping(UUID=mapping["UUID"], FilterCriteria=before)


def test_a_release_that_never_fires_makes_the_trial_invalid_and_never_a_pass(deployed, tmp_path):
    result, code = execute(SilentRelease, deployed, tmp_path, "COMMIT_THEN_TIMEOUT", "conventional")
    (trial,) = result["trials"]
    types = [event["type"] for event in events(package_of(result), trial["trial_id"])]
    assert "barrier_expired" in types and "release_signalled" not in types
    assert trial["validity"] == "invalid"
    (expired,) = [finding for finding in trial["findings"] if finding["code"] == "V14"]
    assert "barrier expired" in expired["message"]
    assert trial["verdict"] != "pass"
    assert code == 2


class HandWrittenEffect(Run):
    """After the trial and before the freeze, somebody adds a transaction to the ledger by hand."""

    def freeze(self):
        trial_id = self.trials[0].trial_id
        client, table = self.lab.client("dynamodb"), self.lab.ledger_table
        (item,) = client.query(
            TableName=table,
            KeyConditionExpression="trial_id = :t",
            ExpressionAttributeValues={":t": {"S": trial_id}},
        )["Items"]
        client.put_item(TableName=table, Item={**item, "transaction_id": {"S": "by-hand"}})
        return super().freeze()


def test_a_transaction_added_by_hand_before_the_freeze_fails_the_trial(deployed, tmp_path):
    result, _ = execute(HandWrittenEffect, deployed, tmp_path, "CONTROL", "conventional")
    (trial,) = result["trials"]
    assert (trial["verdict"], trial["ledger_transactions"], trial["refunded_minor"]) == ("fail", 2, 20000)
    assert trial["correct_completion"] is False


def test_without_credentials_or_target_the_first_line_says_local_and_emulated(lab):
    done = lab.call("runner", "run", "--scenario", "CONTROL", "--protocol", REHEARSAL, "--variant", "durable")
    first_line = done.stderr.splitlines()[0]
    assert "local" in first_line and "emulated" in first_line
    assert done.returncode == 0, done.stderr


def test_with_credentials_and_no_stack_nothing_is_created_and_the_next_step_is_named(lab):
    launched = launch.start(iam=True, note=print)
    with Cloud(launched.running, launched) as cloud:
        done = lab.call(
            "runner",
            "run",
            "--scenario",
            "CONTROL",
            AWS_ACCESS_KEY_ID="000000000000",
            AWS_SECRET_ACCESS_KEY="test",
            AWS_DEFAULT_REGION="us-east-1",
            AWS_ENDPOINT_URL=cloud.endpoint,
        )
        stacks = cloud.client("cloudformation").describe_stacks()["Stacks"]
    assert done.returncode == 64
    assert done.stderr.splitlines()[0].startswith("target: aws")
    assert "cdk deploy" in done.stderr and "--target local" in done.stderr
    assert "Traceback" not in done.stderr
    assert stacks == []


def test_sigkill_in_the_middle_of_a_trial_leaves_no_process_and_no_folder(lab, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "runner", "run", "--protocol", REHEARSAL, "--target", "local"],
        cwd=PROJECT,
        env=lab.environment(TMPDIR=str(tmp_path)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if "provider_commit_confirmed" in line and "COMMIT_THEN_TIMEOUT" in line:
            break
    else:
        pytest.fail("the run ended before a treatment was under way")
    assert list(tmp_path.iterdir()), "the cloud keeps its temporary folder here"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    until = time.monotonic() + RUN_LIMIT_S
    while time.monotonic() < until and (_mentioning(tmp_path) or list(tmp_path.iterdir())):
        time.sleep(0.1)
    assert _mentioning(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def _mentioning(folder: Path) -> list[int]:
    """Pids whose command line or environment names the folder (Linux)."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in text and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found
