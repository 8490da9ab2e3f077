"""What resume does with a trial, by the last state its dead process wrote: it watches, it never sends."""

from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from runner.errors import LabError
from runner.runs import resume
from runner.runs.resume import KILLED_BEFORE, KILLED_PROBING, KILLED_SENDING, NEVER_OPENED
from runner.runs.state import State
from runner.trials.trial import Trial
from tests.runner.pasts import REHEARSAL

OPENING = {
    "state": State.TRIAL_OPENING,
    "trial_id": "t1",
    "kind": "trial",
    "scenario": "CONTROL",
    "variant": "conventional",
    "started_at_ms": 5,
    "dlq_before": 0,
}
MESSAGE = {"message_id": "m1", "body": "{}"}


def log(*states, **opening):
    """A state log that ends after the given states of one trial."""
    facts = {
        State.SENDING: {"intent": "i1"},
        State.SENT: {"message": MESSAGE},
        State.CLOSING: {"ended_because": "quiescent", "error": None},
        State.CLOSED: {"ended_because": "quiescent", "error": None, "ended_at_ms": 9},
    }
    entries = [{"state": State.CREATED, "started_at_ms": 1, "at_ms": 1}, {**OPENING, **opening}]
    return entries + [{"state": state, "trial_id": "t1", **facts.get(state, {})} for state in states]


class Driver:
    """Stands in for TrialDriver. It has no way to send, invoke or open: resume must not need one."""

    def __init__(self, ends="quiescent"):
        self.did, self._ends = [], ends

    def observation(self, _trial):
        return SimpleNamespace(untouched=lambda: True)

    def record_sent(self, _trial, intent):
        self.did.append(("record_sent", intent))

    def wait(self, _trial, _observation, given_up=None):
        self.did.append("wait, may give up" if given_up else "wait")
        return self._ends

    def close(self, trial, ended_because, error=None):
        self.did.append("close")
        self.end(trial, ended_because, error)

    def end(self, trial, ended_because, error=None):
        trial.ended_because, trial.error = ended_because, error


def settle(monkeypatch, entries, journal=("trial_opened",), probe_ends="response_released", ends="quiescent"):
    driver = Driver(ends)
    quiet = SimpleNamespace(started=lambda _t: None, ended=lambda _t: None)
    run = SimpleNamespace(
        run_id="r1",
        trials=[],
        probe=None,
        samples=lambda _id: None,
        driver=lambda: driver,
        progress=quiet,
        lab=None,
        protocol=REHEARSAL,
        clock=SimpleNamespace(monotonic=lambda: 0.0),
    )
    monkeypatch.setattr(resume, "_journal", lambda _run, _id: {name: {} for name in journal})
    monkeypatch.setattr(resume.probing, "wait_for_end", lambda *_: driver.did.append("wait") or probe_ends)
    resume.restore(run, entries)
    resume.settle(run, entries)
    trial: Trial = run.probe or run.trials[0]
    return trial, driver.did


BEFORE_SENDING = (
    (),
    (State.TRIAL_OPENED,),
    (State.TRIAL_OPENED, State.ARMED),
    (State.TRIAL_OPENED, State.SEND_STARTED),
)


@pytest.mark.parametrize("states", BEFORE_SENDING)
def test_a_message_that_was_never_sent_is_not_sent_now(monkeypatch, states):
    trial, did = settle(monkeypatch, log(*states))
    assert (trial.ended_because, trial.error, trial.sends) == ("interrupted", KILLED_BEFORE, 0)
    assert did == ["close"]


def test_a_trial_that_left_no_event_gets_none(monkeypatch):
    trial, did = settle(monkeypatch, log(), journal=())
    assert (trial.ended_because, trial.error, did) == ("interrupted", NEVER_OPENED, [])


@pytest.mark.parametrize("ends", ["quiescent", "interrupted", "trial_limit"])
def test_an_uncertain_send_is_watched_and_closed_as_interrupted_whatever_is_seen(monkeypatch, ends):
    trial, did = settle(monkeypatch, log(State.TRIAL_OPENED, State.SENDING), ends=ends)
    assert (trial.ended_because, trial.error, trial.sends) == ("interrupted", KILLED_SENDING, 1)
    assert trial.message is None
    assert did == ["wait, may give up", "close"]


SENT = (State.TRIAL_OPENED, State.SENDING, State.SENT)


def test_a_sent_message_is_recorded_if_it_was_not_and_watched_to_its_own_end(monkeypatch):
    trial, did = settle(monkeypatch, log(*SENT))
    assert (trial.ended_because, trial.error, trial.sends) == ("quiescent", None, 1)
    assert trial.message == MESSAGE
    assert did == [("record_sent", "i1"), "wait", "close"]


def test_a_sent_message_is_not_recorded_twice(monkeypatch):
    _, did = settle(monkeypatch, log(*SENT, State.WAITING), journal=("trial_opened", "message_sent"))
    assert did == ["wait", "close"]


@pytest.mark.parametrize(("journal", "done"), [(("message_sent",), ["close"]), (("trial_closed",), [])])
def test_the_last_event_is_written_once(monkeypatch, journal, done):
    trial, did = settle(monkeypatch, log(*SENT, State.WAITING, State.CLOSING), journal=journal)
    assert (trial.ended_because, did) == ("quiescent", done)


def test_a_closed_trial_is_left_as_it_is(monkeypatch):
    trial, did = settle(monkeypatch, log(*SENT, State.WAITING, State.CLOSING, State.CLOSED))
    assert (trial.ended_because, trial.ended_at_ms, trial.started_at_ms, did) == ("quiescent", 9, 5, [])


@pytest.mark.parametrize(
    ("states", "probe_ends", "because", "error", "did"),
    [
        ((State.TRIAL_OPENED, State.ARMED), None, "interrupted", KILLED_PROBING, ["close"]),
        ((State.PROBE_INVOKING,), None, "interrupted", KILLED_PROBING, ["wait", "close"]),
        ((State.PROBE_INVOKING,), "response_released", "quiescent", None, ["wait", "close"]),
    ],
)
def test_a_probe_is_watched_and_never_invoked_again(monkeypatch, states, probe_ends, because, error, did):
    entries = log(*states, kind="probe", scenario="COMMIT_THEN_TIMEOUT")
    trial, done = settle(monkeypatch, entries, probe_ends=probe_ends)
    assert (trial.ended_because, trial.error, done) == (because, error, did)


def test_whether_the_barrier_was_armed_is_asked_of_the_journal(monkeypatch):
    trial, _ = settle(monkeypatch, log(State.TRIAL_OPENED), journal=("trial_opened", "barrier_armed"))
    assert trial.armed


def test_a_journal_that_cannot_be_read_leaves_the_run_unfinished_and_the_journal_alone():
    refusal = ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "Query")
    meta = SimpleNamespace(
        service_model=SimpleNamespace(service_name="dynamodb"), method_to_api_mapping={"query": "Query"}
    )

    def query(**_request):
        raise refusal

    lab = SimpleNamespace(journal_table="j", client=lambda _service: SimpleNamespace(meta=meta, query=query))
    run = SimpleNamespace(run_id="r1", lab=lab, clock=SimpleNamespace(now_ms=lambda: 0))
    with pytest.raises(LabError, match="cannot be read") as error:
        resume._journal(run, "t1")
    assert "AccessDeniedException" in error.value.found
