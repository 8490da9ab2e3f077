"""Taking up a run whose process died: everything in motion is watched to its end, nothing new is begun.

    last state of a trial       what may have happened        what resume does
    before `sending`            nothing was sent              closes it as interrupted
    `sending`                   the message may be under way  watches it, closes it as interrupted
    `sent`, `waiting`           the message was accepted      records that, watches it to its own end
    `closing`                   its last event may be there   writes it if it is not
    `closed`                    all of it                     nothing

So resume never sends, never invokes and never opens a trial: no trial can get a second message from it,
whatever happened to the first. Trials that were planned and not begun stay undone, and run.json says so.
"""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from runner.errors import LabError
from runner.names import CONVENTIONAL
from runner.protocol import Protocol
from runner.records import Reads
from runner.runs.run import Run
from runner.runs.state import State
from runner.trials import probe as probing
from runner.trials.collect import partition_query
from runner.trials.driver import TrialDriver
from runner.trials.observe import Observation, plain_item
from runner.trials.trial import Trial

Entries = list[dict[str, Any]]

KILLED_BEFORE = "the runner was killed before it sent the message"
KILLED_SENDING = "the runner was killed while it sent the message; only the journal can say if SQS took it"
KILLED_PROBING = "the runner was killed during the probe"
NEVER_OPENED = "the runner was killed before it opened the trial"


def restore(run: Run, entries: Entries) -> None:
    """Fill a Run with what its state log says of it."""
    run.started_at_ms = entries[0]["started_at_ms"]
    run.resumed = [{"at_ms": e["at_ms"], "after": e["after"]} for e in entries if e["state"] == State.RESUMED]
    run.functions = next((e["functions"] for e in entries if e["state"] == State.WARMED), {})
    for steps in _by_trial(entries).values():
        trial = _trial(run, steps)
        if trial.kind == "probe":
            run.probe = trial
        else:
            trial.queues = run.samples(trial.trial_id)
            run.trials.append(trial)


def settle(run: Run, entries: Entries) -> None:
    """Bring the probe and every begun trial to an end."""
    steps = _by_trial(entries)
    for trial in [run.probe, *run.trials] if run.probe else run.trials:
        _Settler(run, run.driver(), trial, steps[trial.trial_id]).settle()


def _by_trial(entries: Entries) -> dict[str, dict[str, dict[str, Any]]]:
    """Return each begun trial's entries by state, in the order in which the trials were begun."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for entry in entries:
        if "trial_id" in entry:
            found.setdefault(entry["trial_id"], {})[entry["state"]] = entry
    return found


def _trial(run: Run, steps: dict[str, dict[str, Any]]) -> Trial:
    opening = steps[State.TRIAL_OPENING]
    trial = Trial(opening["trial_id"], run.run_id, opening["kind"], opening["scenario"], opening["variant"])
    trial.started_at_ms, trial.dlq_before = opening["started_at_ms"], opening["dlq_before"]
    trial.armed = State.ARMED in steps
    # A send that was begun counts as one: it may have happened.
    trial.sends = int(State.SENDING in steps)
    if State.SENT in steps:
        trial.message = steps[State.SENT]["message"]
    if State.CLOSED in steps:
        closed = steps[State.CLOSED]
        trial.ended_because, trial.error = closed["ended_because"], closed["error"]
        trial.ended_at_ms = closed["ended_at_ms"]
    return trial


class _Settler:
    """Brings one trial to its end, from where its last process left it."""

    def __init__(self, run: Run, driver: TrialDriver, trial: Trial, steps: dict[str, dict[str, Any]]):
        self._run, self._driver, self._trial, self._steps = run, driver, trial, steps
        self._seen: dict[str, dict[str, Any]] = {}

    def settle(self) -> None:
        if State.CLOSED in self._steps:
            return
        trial, progress = self._trial, self._run.progress
        progress.started(trial)
        try:
            self._seen = _journal(self._run, trial.trial_id)
            trial.armed = "barrier_armed" in self._seen
            self._close(*self._end(self._driver.observation(trial)))
        except (ClientError, BotoCoreError, OSError) as error:
            self._driver.end(trial, "error", f"{type(error).__name__}: {error}")
        progress.ended(trial)

    def _end(self, observation: Observation) -> tuple[str, str | None]:
        """Watch what is in motion; return how the trial ended, and why if it was cut off."""
        steps = self._steps
        if State.CLOSING in steps:
            return steps[State.CLOSING]["ended_because"], steps[State.CLOSING]["error"]
        if self._trial.kind == "probe":
            return self._end_of_probe()
        if State.SENT in steps:
            if "message_sent" not in self._seen:
                self._driver.record_sent(self._trial, steps[State.SENDING]["intent"])
            return self._driver.wait(self._trial, observation), None
        if State.SENDING in steps:
            self._driver.wait(self._trial, observation, self._given_up(observation))
            return "interrupted", KILLED_SENDING
        return "interrupted", KILLED_BEFORE

    def _end_of_probe(self) -> tuple[str, str | None]:
        run = self._run
        if State.PROBE_INVOKING not in self._steps:
            return "interrupted", KILLED_PROBING
        if probing.wait_for_end(self._trial, run.lab, run.protocol, run.clock) is None:
            return "interrupted", KILLED_PROBING
        return "quiescent", None

    def _given_up(self, observation: Observation):
        """A message that SQS took shows itself within a visibility timeout, or it was never taken."""
        until = self._run.clock.monotonic() + _longest_silence_s(self._run.protocol, self._trial.variant)
        return lambda: observation.untouched() and self._run.clock.monotonic() > until

    def _close(self, ended_because: str, error: str | None) -> None:
        if not self._seen:
            self._driver.end(self._trial, "interrupted", NEVER_OPENED)
        elif "trial_closed" in self._seen:
            self._driver.end(self._trial, ended_because, error)
        else:
            self._driver.close(self._trial, ended_because, error)


def _journal(run: Run, trial_id: str) -> dict[str, dict[str, Any]]:
    """Return the trial's events so far by type; only the runner's own, single ones are asked for.

    Raises LabError when they cannot be read: then nothing may be added either, and the run stays unfinished.
    """
    reads = Reads(run.clock.now_ms)
    query = partition_query(run.lab.journal_table, trial_id)
    pages = reads.all_pages("watch", run.lab.client("dynamodb"), "Query", query)
    errors = [line["error"] for line in reads.lines if "error" in line]
    if errors:
        raise LabError(
            f"the journal of {trial_id} cannot be read",
            expected="every event of the trial",
            found=f"{errors[0]['code']}: {errors[0]['message']}",
            next_step=f"python -m runner resume {run.run_id}, once it can",
        )
    items = [plain_item(item) for page in pages for item in page["Items"]]
    return {item["type"]: item for item in items if "type" in item}


def _longest_silence_s(protocol: Protocol, variant: str) -> int:
    """How long a message in the queue can go unseen: in flight at a caller that then died."""
    limits = protocol.conventional if variant == CONVENTIONAL else protocol.durable
    return limits.visibility_timeout_s
