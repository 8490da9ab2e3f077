"""The four cells of Study 1 on the local cloud under the rehearsal protocol, from one command."""

import json
import re
import shutil
import subprocess
import sys
from datetime import datetime

import pytest

from runner import protocol as protocols
from tests.e2e.lab import PROJECT, REHEARSAL, events, first, package_of, records

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

P = protocols.load(REHEARSAL)


@pytest.fixture(scope="module")
def result(lab):
    return lab.run()


def trial_of(result, scenario, variant):
    (trial,) = [t for t in result["trials"] if (t["scenario"], t["variant"]) == (scenario, variant)]
    return trial


def test_the_table_is_the_articles(result):
    found = [
        (
            t["scenario"],
            t["variant"],
            t["ledger_transactions"],
            t["refunded_minor"],
            t["currency"],
            t["verdict"],
            t["validity"],
            t["processing"],
            t["effect_knowledge"],
            t["correct_completion"],
        )
        for t in sorted(result["trials"], key=lambda t: t["trial_id"])
    ]
    control = (1, 10000, "BRL", "pass", "valid", "SUCCEEDED", "KNOWN", True)
    treated = (2, 20000, "BRL", "fail", "valid", "SUCCEEDED", "UNKNOWN", False)
    assert found == [
        ("CONTROL", "conventional", *control),
        ("CONTROL", "durable", *control),
        ("COMMIT_THEN_TIMEOUT", "conventional", *treated),
        ("COMMIT_THEN_TIMEOUT", "durable", *treated),
    ]


def test_the_result_says_what_it_is(result):
    assert (result["target"], result["grade"], result["protocol"]) == ("local", "emulated", REHEARSAL)
    assert package_of(result).name == result["package"]["id"]
    assert re.fullmatch(r"[0-9a-f]{64}", result["package"]["id"])
    expected = {"cloud_up", "deploy", "probe", "trials", "freeze", "judge", "total", "protocol_floor"}
    assert expected <= result["timing_s"].keys()
    # Probe 3 s; the slower lane is conventional: a control settles 2 s, the treatment 8 + 2 s.
    assert result["timing_s"]["protocol_floor"] == 3 + 2 + 8 + 2
    assert result["timing_s"]["total"] >= result["timing_s"]["protocol_floor"]


@pytest.mark.parametrize("variant", ["conventional", "durable"])
def test_the_sequence_proves_commit_before_timeout_before_release(result, variant):
    trial = trial_of(result, "COMMIT_THEN_TIMEOUT", variant)
    found = events(package_of(result), trial["trial_id"])
    assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
    commit = first(found, "provider_commit_confirmed")
    timeout = first(found, "caller_timeout_recorded")
    release = first(found, "release_signalled")
    released = first(found, "response_released")
    assert commit["detail"]["barrier"] == "HELD"
    assert commit["seq"] < timeout["seq"] < release["seq"] < released["seq"]
    assert (release["caused_by"], released["caused_by"]) == (timeout["event_id"], release["event_id"])
    assert timeout["elapsed_ms"] >= P.caller.deadline_ms
    assert first(found, "provider_commit_confirmed", 1)["detail"]["barrier"] == "SPENT"
    assert found[-1]["type"] == "trial_closed"


def test_conventional_is_delivered_again_a_visibility_timeout_later(result):
    trial = trial_of(result, "COMMIT_THEN_TIMEOUT", "conventional")
    found = events(package_of(result), trial["trial_id"])
    received, redelivered = first(found, "delivery_received"), first(found, "delivery_received", 1)
    assert (received["receive_count"], redelivered["receive_count"]) == (1, 2)
    assert received["delivery_id"] == redelivered["delivery_id"]
    # The queue's clock starts after the send and, nobody knows how long, before the caller's first line.
    waited_ms = redelivered["at_ms"] - first(found, "message_send_started")["at_ms"]
    assert waited_ms >= P.conventional.visibility_timeout_s * 1000


def test_durable_retries_its_step_in_the_same_execution(result):
    trial = trial_of(result, "COMMIT_THEN_TIMEOUT", "durable")
    reads = records(package_of(result), trial["trial_id"], "durable")
    (history,) = [read for read in reads if read["read"] == "history"]
    types = [event["EventType"] for event in history["response"]["Events"]]
    assert types == [
        "ExecutionStarted",
        "StepStarted",
        "StepFailed",
        "InvocationCompleted",
        "StepStarted",
        "StepSucceeded",
        "InvocationCompleted",
        "ExecutionSucceeded",
    ]
    failed, retried = history["response"]["Events"][2], history["response"]["Events"][4]
    details = failed["StepFailedDetails"]["RetryDetails"]
    assert (details["CurrentAttempt"], details["NextAttemptDelaySeconds"]) == (
        1,
        P.durable.step_retry_delay_s,
    )
    waited = _at(retried) - _at(failed)
    assert waited.total_seconds() >= P.durable.step_retry_delay_s - 0.2


def _at(event):
    return datetime.fromisoformat(event["EventTimestamp"])


def test_the_controls_leave_most_of_the_deadline_unused(result):
    for variant in ("conventional", "durable"):
        trial = trial_of(result, "CONTROL", variant)
        answer = first(events(package_of(result), trial["trial_id"]), "response_received")
        assert P.caller.deadline_ms - answer["elapsed_ms"] > 0


def test_d12_the_dead_letter_queues_stayed_empty_in_every_sample(result):
    for trial in result["trials"]:
        samples = records(package_of(result), trial["trial_id"], "queues")
        dlq = [s["response"]["Attributes"] for s in samples if s["read"] == "queue_dlq"]
        assert dlq
        assert {count for sample in dlq for count in sample.values()} == {"0"}


def test_callers_never_hear_of_the_scenario(result):
    for trial in result["trials"]:
        message = json.loads((package_of(result) / "trials" / trial["trial_id"] / "trial.json").read_text())[
            "message"
        ]
        assert "CONTROL" not in message["body"] and "TIMEOUT" not in message["body"]
        assert "CONTROL" not in message["group_id"] and "TIMEOUT" not in message["group_id"]


def test_the_oracle_alone_says_the_same_with_nothing_else_on_the_disk(result, tmp_path):
    shutil.copytree(PROJECT / "oracle", tmp_path / "oracle", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(package_of(result), tmp_path / result["package"]["id"])
    command = [sys.executable, "-I", "-S", "oracle", "judge", result["package"]["id"], "--json"]
    if shutil.which("unshare"):
        # A network namespace of its own: not even loopback is up in it.
        command = ["unshare", "--map-root-user", "--net", *command]
    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    alone = {t["trial_id"]: t["verdict"] for t in json.loads(done.stdout)["trials"]}
    assert alone == {t["trial_id"]: t["verdict"] for t in result["trials"]}


def test_one_changed_byte_in_any_file_is_indeterminate_with_exit_2(result, lab, tmp_path):
    package = package_of(result)
    files = sorted(path.relative_to(package) for path in package.rglob("*") if path.is_file())
    assert len(files) > 20
    for name in files:
        copy = tmp_path / package.name
        shutil.copytree(package, copy)
        data = bytearray((copy / name).read_bytes())
        data[len(data) // 2] ^= 1
        (copy / name).write_bytes(bytes(data))
        judged = lab.call("oracle", "judge", str(copy), "--json")
        assert judged.returncode == 2, f"{name}: {judged.stdout}"
        assert json.loads(judged.stdout)["verdict"] == "indeterminate"
        shutil.rmtree(copy)
