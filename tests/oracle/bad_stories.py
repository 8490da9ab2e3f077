"""Trials in which one thing went wrong, told with the builder's one-line events. Each breaks one clause."""

from __future__ import annotations

from tests.oracle.builder import Trial, control, treatment
from tests.oracle.frozen import CONTROL, TREATMENT


def control_durable(package):
    return control(package, "durable")


def one_listed_one_not(package):
    """The listed trial is added by hand, so that dropping it from run.json leaves a stray."""
    package.add(control(package, trial_id="stray"))
    return control(package)


def _begun(package, scenario=CONTROL):
    trial = Trial(package, "bad", scenario, "conventional")
    trial.open()
    return trial


def never_closed(package):
    trial = _begun(package)
    dispatch = trial.dispatch()
    trial.finish(trial.answer(dispatch, trial.commit(dispatch)))
    return trial


def unfinished(package):
    trial = _begun(package)
    dispatch = trial.dispatch()
    trial.answer(dispatch, trial.commit(dispatch))
    return trial.close()


def two_outcomes(package):
    trial = _begun(package)
    dispatch = trial.dispatch()
    commit = trial.commit(dispatch)
    trial.answer(dispatch, commit)
    trial.finish(trial.answer(dispatch, commit))
    return trial.close()


def refused(package):
    trial = _begun(package)
    dispatch = trial.dispatch()
    refusal = trial.event(
        "caller",
        "attempt_failed",
        caused_by=dispatch["event_id"],
        elapsed_ms=90,
        detail={"code": "INVALID_REQUEST"},
    )
    trial.finish(refusal)
    trial.state.update(reason="PROVIDER_REFUSED", effect_knowledge="KNOWN")
    return trial.close()


def two_effects(package):
    """Both deliveries answered: no timeout, so nothing but the count is wrong."""
    trial = _begun(package)
    for attempt in (1, 2):
        dispatch = trial.dispatch(attempt, receive_count=attempt)
        response = trial.answer(dispatch, trial.commit(dispatch))
    trial.finish(response)
    return trial.close()


def another_payment(package):
    trial = Trial(package, "bad", CONTROL, "conventional")
    trial.request["payment_id"] = "pay-other"
    trial.open()
    dispatch = trial.dispatch()
    trial.finish(trial.answer(dispatch, trial.commit(dispatch)))
    return trial.close()


def answer_lost(package):
    """The first answer is lost without a timeout; the provider answers the retry from its first commit."""
    trial = _begun(package)
    first = trial.dispatch(1)
    commit = trial.commit(first)
    trial.event("provider", "response_sent", attempt=1, caused_by=commit["event_id"])
    trial.event(
        "caller", "outcome_unknown", attempt=1, caused_by=first["event_id"], detail={"reason": "CONNECTION"}
    )
    trial.state["effect_knowledge"] = "UNKNOWN"
    trial.finish(trial.answer(trial.dispatch(2, receive_count=2), commit))
    return trial.close()


def two_on_the_wire(package):
    trial = _begun(package)
    dispatch = trial.dispatch()
    trial.event(
        "provider",
        "provider_request_received",
        attempt=1,
        lambda_request_id="prov-1b",
        caused_by=dispatch["event_id"],
    )
    trial.finish(trial.answer(dispatch, trial.commit(dispatch)))
    return trial.close()


# -- treatments, with a provider that answers the retry from its first commit: one effect ----------
def exposed(package, trial_id="bad"):
    """A treatment up to its released first response."""
    trial = Trial(package, trial_id, TREATMENT, "conventional")
    trial.open()
    first = trial.dispatch(1)
    held = trial.commit(first, "HELD")
    trial.release(trial.timeout(first))
    return trial, held


def retried(trial, commit):
    trial.finish(trial.answer(trial.dispatch(2, receive_count=2), commit))
    return trial.close()


def call_in_flight(package):
    """A second caller was killed after its dispatch; nobody knows whether that call still runs."""
    trial, held = exposed(package)
    trial.event(
        "caller",
        "dispatch_started",
        attempt=2,
        delivery_id=trial.message_id,
        lambda_request_id="req-2",
        caused_by=trial.events[4]["event_id"],
    )
    trial.finish(trial.answer(trial.dispatch(3, receive_count=2), held))
    return trial.close()


def knows_again(package):
    trial = treatment(package, trial_id="bad", idempotent=True)
    trial.state["effect_knowledge"] = "KNOWN"
    return trial


def armed_after_send(package):
    trial = Trial(package, "bad", TREATMENT, "conventional")
    trial.event("runner", "trial_opened")
    trial.event("runner", "message_send_started")
    armed = trial.event("runner", "barrier_armed")
    trial.event("runner", "message_sent", delivery_id=trial.message_id)
    trial.barrier = {"trial_id": "bad", "state": "ARMED", "armed_event_id": armed["event_id"]}
    first = trial.dispatch(1)
    held = trial.commit(first, "HELD")
    trial.release(trial.timeout(first))
    return retried(trial, held)


def timeout_before_commit(package):
    trial = _begun(package, TREATMENT)
    first = trial.dispatch(1)
    timeout = trial.timeout(first)
    held = trial.commit(first, "HELD")
    trial.release(timeout)
    return retried(trial, held)


def released_by_another(package):
    trial = treatment(package, trial_id="bad", idempotent=True)
    trial.barrier["released_by_event_id"] = "bad-e1"
    return trial


def below_deadline(package):
    trial = _begun(package, TREATMENT)
    first = trial.dispatch(1)
    held = trial.commit(first, "HELD")
    trial.release(trial.timeout(first, elapsed_ms=2999))
    return retried(trial, held)


def barrier_expired(package):
    trial = _begun(package, TREATMENT)
    first = trial.dispatch(1)
    held = trial.commit(first, "HELD")
    trial.timeout(first)
    trial.event("provider", "barrier_expired", attempt=1, caused_by=held["event_id"])
    trial.barrier["state"] = "EXPIRED"
    return retried(trial, held)


def no_retry(package):
    """Two dispatches at once; the answered one began before the other's timeout, so nothing was retried."""
    trial = _begun(package, TREATMENT)
    first = trial.dispatch(1)
    held = trial.commit(first, "HELD")
    second = trial.dispatch(2)
    trial.release(trial.timeout(first))
    trial.finish(trial.answer(second, held))
    return trial.close()


def never_fired(package):
    """Armed, but the provider answered in time: one effect that proves nothing (CASES D03)."""
    trial = _begun(package, TREATMENT)
    dispatch = trial.dispatch()
    trial.finish(trial.answer(dispatch, trial.commit(dispatch, "SPENT")))
    return trial.close()


# -- changes of documents ---------------------------------------------------------------------
def failed_sample(path):
    def change(docs):
        del docs[path][0]["response"]
        docs[path][0]["error"] = {"code": "RequestThrottled", "message": "slow down"}

    return change


def without(path, name, first):
    """`first`, then the last row of every page of `path` loses an attribute."""

    def change(docs):
        first(docs)
        for line in docs[path]:
            del line["response"]["Items"][-1][name]

    return change


def truncate_input(lines):
    lines[-1]["response"]["Events"][0]["ExecutionStartedDetails"]["Input"] = {"Truncated": True}


def sdk_retries(docs):
    functions = docs["environment.json"]["functions"]
    functions["durable"] = {
        **functions["durable"],
        "sdk_config": {"lambda": {"retries": {"total_max_attempts": 3}}},
    }


def clock_behind(items):
    for item in items:
        if item.get("source") == {"S": "provider"}:
            item["at_ms"] = {"N": str(int(item["at_ms"]["N"]) - 10_000)}
