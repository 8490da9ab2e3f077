"""Driving a trial: its first event, its barrier, its one message, and the wait until nothing moves."""

import json
from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lambdas.shared.journal import Journal
from runner.clock import SystemClock, new_event_id
from runner.names import COMMIT_THEN_TIMEOUT
from runner.protocol import Protocol
from runner.runs.state import State
from runner.targets.target import Lab
from runner.trials.observe import Observation
from runner.trials.trial import Trial, refund_request


class TrialDriver:
    """Opens a trial, arms its barrier, sends its one message and waits until nothing moves.

    `log(state, **facts)` puts each step on the disk before it is taken.
    `note(trial, event)` is called for each new journal event and `waiting(trial, text)` for
    what is being waited for; both only inform the person who watches.
    """

    def __init__(
        self,
        lab: Lab,
        protocol: Protocol,
        clock: SystemClock,
        stopped: Callable[[], bool],
        note: Callable[[Trial, dict[str, Any]], None],
        waiting: Callable[[Trial, str], None],
        log: Callable[..., None],
    ):
        self._lab = lab
        self._protocol = protocol
        self._clock = clock
        self._stopped = stopped
        self._note = note
        self._waiting = waiting
        self.log = log
        self.journal = Journal(
            lab.client("dynamodb"),
            lab.journal_table,
            source="runner",
            now_ms=clock.now_ms,
            new_id=new_event_id,
            sleep=clock.sleep,
        )

    def run(self, trial: Trial) -> None:
        """Run the trial to its end. A fault of the harness ends it as `error`, never silently."""
        trial.started_at_ms = self._clock.now_ms()
        observation = self.observation(trial)
        try:
            observation.baseline()
            self.open_and_arm(trial)
            self._send(trial)
            self.log(State.WAITING, trial_id=trial.trial_id)
            self.close(trial, self.wait(trial, observation))
        except (ClientError, BotoCoreError, OSError) as error:
            self.end(trial, "error", f"{type(error).__name__}: {error}")

    def observation(self, trial: Trial) -> Observation:
        """Return a watcher of the trial."""
        return Observation(self._lab, self._protocol, self._clock, trial)

    def close(self, trial: Trial, ended_because: str, error: str | None = None) -> None:
        """Record the trial's last event: nothing of it is watched any more."""
        self.log(State.CLOSING, trial_id=trial.trial_id, ended_because=ended_because, error=error)
        self.journal.append(trial.trial_id, "trial_closed")
        self.end(trial, ended_because, error)

    def end(self, trial: Trial, ended_because: str, error: str | None = None) -> None:
        """Note how the trial ended."""
        trial.ended_because, trial.error, trial.ended_at_ms = ended_because, error, self._clock.now_ms()
        self.log(
            State.CLOSED,
            trial_id=trial.trial_id,
            ended_because=ended_because,
            error=error,
            ended_at_ms=trial.ended_at_ms,
        )

    def open_and_arm(self, trial: Trial) -> None:
        """Record the trial's first events; in a treatment the barrier is armed with them."""
        self.log(
            State.TRIAL_OPENING,
            trial_id=trial.trial_id,
            kind=trial.kind,
            scenario=trial.scenario,
            variant=trial.variant,
            started_at_ms=trial.started_at_ms,
            dlq_before=trial.dlq_before,
        )
        self.journal.append(trial.trial_id, "trial_opened", detail={"variant": trial.variant})
        self.log(State.TRIAL_OPENED, trial_id=trial.trial_id)
        if trial.scenario == COMMIT_THEN_TIMEOUT:
            self.journal.append(
                trial.trial_id,
                "barrier_armed",
                companions=(lambda _seq, event_id: self._barrier_put(trial.trial_id, event_id),),
            )
            trial.armed = True
            self.log(State.ARMED, trial_id=trial.trial_id)

    def _barrier_put(self, trial_id: str, event_id: str) -> dict[str, Any]:
        return {
            "Put": {
                "TableName": self._lab.barrier_table,
                "Item": {
                    "trial_id": {"S": trial_id},
                    "state": {"S": "ARMED"},
                    "armed_event_id": {"S": event_id},
                },
                "ConditionExpression": "attribute_not_exists(trial_id)",
            }
        }

    def _send(self, trial: Trial) -> None:
        """Send the trial's one message: the refund and the trial's id, never the scenario."""
        body = json.dumps(
            {"trial_id": trial.trial_id, "request": refund_request(self._protocol)}, sort_keys=True
        )
        self.log(State.SEND_STARTED, trial_id=trial.trial_id)
        intent = self.journal.append(trial.trial_id, "message_send_started")
        self.log(State.SENDING, trial_id=trial.trial_id, intent=intent.event_id)
        trial.sends += 1
        sent = self._lab.client("sqs").send_message(
            QueueUrl=self._lab.queue_url(trial.variant),
            MessageBody=body,
            MessageGroupId=trial.trial_id,
            MessageDeduplicationId=trial.trial_id,
        )
        trial.message = {
            "message_id": sent["MessageId"],
            "group_id": trial.trial_id,
            "deduplication_id": trial.trial_id,
            "body": body,
            "sequence_number": sent.get("SequenceNumber"),
        }
        self.log(State.SENT, trial_id=trial.trial_id, message=trial.message)
        self.record_sent(trial, intent.event_id)

    def record_sent(self, trial: Trial, intent_id: str) -> None:
        """Record that SQS has accepted the trial's message."""
        self.journal.append(
            trial.trial_id, "message_sent", delivery_id=trial.message["message_id"], caused_by=intent_id
        )

    def wait(
        self, trial: Trial, observation: Observation, given_up: Callable[[], bool] = lambda: False
    ) -> str:
        """Watch until the trial is quiescent, out of time, or interrupted; return which.

        `given_up` is asked after each look and ends the wait as interrupted.
        """
        limit = self._clock.monotonic() + self._protocol.quiescence.trial_limit_s
        while self._clock.monotonic() < limit:
            if self._stopped():
                return "interrupted"
            for event in observation.look():
                self._note(trial, event)
            if observation.quiescent():
                return "quiescent"
            if given_up():
                return "interrupted"
            self._waiting(trial, observation.waiting_for())
            self._clock.sleep(self._protocol.quiescence.interval_s)
        return "trial_limit"
