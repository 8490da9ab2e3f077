"""Warming every function, and the transport probe: the causal chain once, in isolation.

The probe is COMMIT_THEN_TIMEOUT with a single call and no retry: the caller is invoked
directly, so no queue can deliver again. It must show the chain commit -> timeout -> release on
this target before any trial may run (DESIGN 7).
"""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from runner.clock import SystemClock
from runner.errors import LabError
from runner.names import COMMIT_THEN_TIMEOUT, CONVENTIONAL
from runner.protocol import Protocol
from runner.records import Reads
from runner.runs.state import State
from runner.targets.target import Lab
from runner.trials.collect import partition_query
from runner.trials.driver import TrialDriver
from runner.trials.observe import plain_item
from runner.trials.trial import Trial, refund_request

RELEASED, EXPIRED = "response_released", "barrier_expired"
POLL_S = 0.2


FUNCTIONS = ("provider", "release", "conventional", "durable")


def warm(lab: Lab, side_by_side: int, names: tuple[str, ...] = FUNCTIONS) -> dict[str, Any]:
    """Invoke the named functions with a ping and return what each says of its own SDK.

    A cold first call can outlast the caller's deadline, which would be the studied fault where
    the protocol does not want it (EMULATORS.md). The provider is called `side_by_side` times at
    once, because that many trials will call it at once, each from an environment of its own.
    Raises LabError naming a function that fails.
    """
    client = lab.client("lambda")
    calls = [name for name in names for _ in range(side_by_side if name == "provider" else 1)]
    with ThreadPoolExecutor(len(calls)) as pool:
        pongs = pool.map(lambda name: _ping(client, name, lab.functions()[name]), calls)
        return dict(zip(calls, pongs, strict=True))


def _ping(client: Any, name: str, function: dict[str, str]) -> dict[str, Any]:
    answer = client.invoke(**function, Payload=json.dumps({"ping": True}))
    payload = answer["Payload"].read()
    if answer.get("FunctionError"):
        raise LabError(
            f"the {name} function does not answer a ping",
            expected='{"pong": true, ...}',
            found=payload.decode(errors="replace")[:500],
            next_step="read the function's log group; deploy the stack again if it is an old one",
        )
    return json.loads(payload)


def run_probe(trial: Trial, lab: Lab, protocol: Protocol, clock: SystemClock, driver: TrialDriver) -> bool:
    """Run the probe as `trial`; return whether the provider was released by the timeout.

    Whether the chain is complete is the oracle's to say; this only decides if trials may start.
    """
    trial.started_at_ms = clock.now_ms()
    driver.open_and_arm(trial)
    driver.journal.append(trial.trial_id, "probe_invoked")
    driver.log(State.PROBE_INVOKING, trial_id=trial.trial_id)
    lab.client("lambda").invoke(
        **lab.functions()[CONVENTIONAL], Payload=json.dumps(_sqs_event(trial, protocol, lab))
    )
    driver.log(State.PROBE_INVOKED, trial_id=trial.trial_id)
    ended_by = wait_for_end(trial, lab, protocol, clock)
    driver.close(trial, "quiescent" if ended_by else "trial_limit")
    return ended_by == RELEASED


def new_probe(run_id: str) -> Trial:
    """Return the probe's trial record."""
    return Trial(f"{run_id}-probe", run_id, "probe", COMMIT_THEN_TIMEOUT, CONVENTIONAL)


def wait_for_end(trial: Trial, lab: Lab, protocol: Protocol, clock: SystemClock) -> str | None:
    """Wait until the provider was released or gave up; return which, or None if neither was seen."""
    limit = clock.monotonic() + protocol.provider.hold_budget_s + protocol.provider.function_timeout_s
    while clock.monotonic() < limit:
        reads = Reads(clock.now_ms)
        query = partition_query(lab.journal_table, trial.trial_id)
        for page in reads.all_pages("watch", lab.client("dynamodb"), "Query", query):
            for item in page["Items"]:
                if plain_item(item).get("type") in (RELEASED, EXPIRED):
                    return plain_item(item)["type"]
        clock.pause(POLL_S)
    return None


def _sqs_event(trial: Trial, protocol: Protocol, lab: Lab) -> dict[str, Any]:
    """Return the event SQS would deliver, without any queue behind it."""
    body = json.dumps({"trial_id": trial.trial_id, "request": refund_request(protocol)}, sort_keys=True)
    return {
        "Records": [
            {
                "messageId": f"probe-{trial.trial_id}",
                "receiptHandle": "none",
                "body": body,
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "SentTimestamp": str(trial.started_at_ms),
                    "MessageGroupId": trial.trial_id,
                    "MessageDeduplicationId": trial.trial_id,
                },
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:{lab.region}:{lab.account}:probe.fifo",
                "awsRegion": lab.region,
            }
        ]
    }
