"""Builds tiny, complete, valid packages in memory, from one-line events."""

from __future__ import annotations

from tests.oracle.frozen import (
    CONTROL,
    START_MS,
    TREATMENT,
    Package,
    canonical,
    encode,
    item,
    record,
    reindex,
    typed,
    write,
)
from tests.oracle.frozen_durable import DurableReads
from tests.oracle.protocols import REHEARSAL_TOML

# What the tests of other parts build packages with; they import it from here.
__all__ = ["CONTROL", "TREATMENT", "Package", "Trial", "control", "encode", "four_cells", "package_with"]
__all__ += ["probe", "reindex", "treatment", "typed", "write"]


class Trial(DurableReads):
    """One trial told event by event; `documents()` is what the freezer would have written."""

    def __init__(self, package: Package, trial_id, scenario, variant, kind="trial"):
        self.protocol, self.outputs = package.protocol, package.outputs
        self.trial_id, self.scenario, self.variant, self.kind = trial_id, scenario, variant, kind
        self.request = dict(self.protocol["refund"])
        self.events: list[dict] = []
        self.rows: list[dict] = []
        self.state: dict | None = None
        self.barrier: dict | None = None
        self.history: list[dict] = []
        self.message_id = f"msg-{trial_id}"

    # -- one line per event -------------------------------------------------------------------
    def event(self, source, type_, **attributes) -> dict:
        seq = len(self.events) + 1
        event = {
            "trial_id": self.trial_id,
            "entry": f"EVENT#{seq:06d}",
            "seq": seq,
            "event_id": f"{self.trial_id}-e{seq}",
            "source": source,
            "type": type_,
            "at_ms": START_MS + seq * 100,
            **attributes,
        }
        self.events.append(event)
        return event

    def open(self):
        self.event("runner", "trial_opened", detail={"variant": self.variant})
        if self.scenario == TREATMENT:
            armed = self.event("runner", "barrier_armed")
            self.barrier = {"trial_id": self.trial_id, "state": "ARMED", "armed_event_id": armed["event_id"]}
        if self.kind == "probe":
            self.event("runner", "probe_invoked")
            return
        self.event("runner", "message_send_started")
        self.event("runner", "message_sent", delivery_id=self.message_id)

    def dispatch(self, attempt=1, receive_count=1) -> dict:
        delivery = self.event(
            "caller",
            "delivery_received",
            delivery_id=self.message_id,
            receive_count=receive_count,
            lambda_request_id=f"req-{attempt}",
        )
        self.state = self.state or {"status": "IN_PROGRESS"}
        dispatch = self.event(
            "caller",
            "dispatch_started",
            attempt=attempt,
            delivery_id=self.message_id,
            lambda_request_id=f"req-{attempt}",
            caused_by=delivery["event_id"],
        )
        self.event(
            "provider",
            "provider_request_received",
            attempt=attempt,
            lambda_request_id=f"prov-{attempt}",
            caused_by=dispatch["event_id"],
        )
        return dispatch

    def commit(self, dispatch, barrier="NONE", **changes) -> dict:
        attempt, number = dispatch["attempt"], len(self.rows) + 1
        event = self.event(
            "provider",
            "provider_commit_confirmed",
            attempt=attempt,
            caused_by=dispatch["event_id"],
            transaction_id=f"txn-{number}",
            detail={"barrier": barrier},
        )
        row = {
            "trial_id": self.trial_id,
            "transaction_id": f"txn-{number}",
            "status": "SUCCEEDED",
            "refund_request_id": self.request["refund_request_id"],
            "payment_id": self.request["payment_id"],
            "amount_minor": self.request["approved_minor"],
            "currency": self.request["currency"],
            "seq": event["seq"],
            "dispatch_event_id": dispatch["event_id"],
            "attempt": attempt,
            "provider_request_id": f"prov-{attempt}",
            "committed_at_ms": event["at_ms"],
        }
        self.rows.append({**row, **changes})
        if barrier == "HELD":
            self.barrier.update(
                state="HELD",
                held_attempt=attempt,
                held_dispatch_event_id=dispatch["event_id"],
                held_event_id=event["event_id"],
            )
        return event

    def timeout(self, dispatch, elapsed_ms=3001) -> dict:
        self.state["effect_knowledge"] = "UNKNOWN"
        return self.event(
            "caller",
            "caller_timeout_recorded",
            attempt=dispatch["attempt"],
            elapsed_ms=elapsed_ms,
            caused_by=dispatch["event_id"],
            detail={"deadline_ms": self.protocol["caller"]["deadline_ms"], "library_outcome": "none"},
        )

    def release(self, timeout) -> dict:
        release = self.event(
            "release", "release_signalled", attempt=timeout["attempt"], caused_by=timeout["event_id"]
        )
        self.barrier.update(
            state="RELEASED", released_by_event_id=timeout["event_id"], release_event_id=release["event_id"]
        )
        return self.event(
            "provider", "response_released", attempt=timeout["attempt"], caused_by=release["event_id"]
        )

    def answer(self, dispatch, commit, elapsed_ms=150) -> dict:
        self.event("provider", "response_sent", attempt=dispatch["attempt"], caused_by=commit["event_id"])
        response = self.event(
            "caller",
            "response_received",
            attempt=dispatch["attempt"],
            elapsed_ms=elapsed_ms,
            transaction_id=commit["transaction_id"],
            caused_by=dispatch["event_id"],
        )
        self.state.setdefault("effect_knowledge", "KNOWN")
        return response

    def finish(self, response):
        self.event("caller", "request_finished", caused_by=response["event_id"])
        self.state.update(status="FINISHED", reason="SUCCEEDED")

    def close(self) -> Trial:
        self.event("runner", "trial_closed")
        return self

    # -- what the freezer would have read -----------------------------------------------------
    def documents(self) -> dict[str, object]:
        documents = {
            "trial.json": self.trial_json(),
            "journal.jsonl": self.journal_jsonl(),
            "ledger.jsonl": [self.snapshot(1), self.snapshot(2)],
        }
        if self.kind == "trial":
            documents["queues.jsonl"] = self.queues_jsonl()
            if self.variant == "durable":
                documents["durable.jsonl"] = self.durable_jsonl()
        return documents

    @property
    def queues(self) -> dict:
        prefix = self.variant.capitalize()
        return {"source": self.outputs[prefix + "QueueUrl"], "dlq": self.outputs[prefix + "DlqUrl"]}

    def trial_json(self) -> dict:
        body = canonical({"trial_id": self.trial_id, "request": self.request}).decode()
        message = {
            "message_id": self.message_id,
            "group_id": self.trial_id,
            "deduplication_id": self.trial_id,
            "body": body,
            "sequence_number": None,
        }
        return {
            "trial_id": self.trial_id,
            "run_id": "run-1",
            "kind": self.kind,
            "scenario": self.scenario,
            "variant": self.variant,
            "request": self.request,
            "armed": self.scenario == TREATMENT,
            "message": message if self.kind == "trial" else None,
            "queues": self.queues,
            "started_at_ms": START_MS,
            "ended_at_ms": START_MS + 9_000,
            "ended_because": "quiescent",
            "quiescence": {key: self.protocol["quiescence"][key] for key in ("samples", "interval_s")},
            "driver": {"total_max_attempts": 1, "sends": 1, "source_queue_receives": 0},
            "error": None,
        }

    def query(self, read, table, items) -> dict:
        request = {
            "TableName": table,
            "ConsistentRead": True,
            "KeyConditionExpression": "trial_id = :trial",
            "ExpressionAttributeValues": {":trial": {"S": self.trial_id}},
        }
        response = {"Items": items, "Count": len(items), "ScannedCount": len(items)}
        return record(read, "dynamodb", "Query", request, response, at_ms=START_MS + 9_000)

    def journal_jsonl(self) -> list:
        items = [item(trial_id=self.trial_id, entry="COUNTER", n=len(self.events))]
        items += [item(**event) for event in self.events]
        if self.state:
            items.append(
                item(
                    trial_id=self.trial_id,
                    entry="REQUEST",
                    **self.state,
                    refund_request_id=self.request["refund_request_id"],
                )
            )
        barrier = record(
            "barrier",
            "dynamodb",
            "GetItem",
            {
                "TableName": self.outputs["BarrierTable"],
                "ConsistentRead": True,
                "Key": {"trial_id": {"S": self.trial_id}},
            },
            {"Item": item(**self.barrier)} if self.barrier else {},
            at_ms=START_MS + 9_000,
        )
        return [self.query("journal", self.outputs["JournalTable"], items), barrier]

    def snapshot(self, number) -> dict:
        return self.query(
            f"ledger_snapshot_{number}", self.outputs["LedgerTable"], [item(**row) for row in self.rows]
        )

    def queues_jsonl(self, source=0, dlq=0) -> list:
        lines = []
        for sample in range(self.protocol["quiescence"]["samples"]):
            for read, key, visible in (("queue_source", "source", source), ("queue_dlq", "dlq", dlq)):
                url, zero = self.queues[key], "0"
                names = [
                    "ApproximateNumberOfMessages",
                    "ApproximateNumberOfMessagesNotVisible",
                    "ApproximateNumberOfMessagesDelayed",
                ]
                values = {**dict.fromkeys(names, zero), names[0]: str(visible)}
                lines.append(
                    record(
                        read,
                        "sqs",
                        "GetQueueAttributes",
                        {"QueueUrl": url, "AttributeNames": names},
                        {"Attributes": values},
                        of=url,
                        at_ms=START_MS + 5_000 + sample * 1_000,
                    )
                )
        return lines


# -- stories ----------------------------------------------------------------------------------
def probe(package, trial_id="probe-1") -> Trial:
    trial = Trial(package, trial_id, TREATMENT, "conventional", kind="probe")
    trial.open()
    dispatch = trial.dispatch()
    trial.commit(dispatch, "HELD")
    trial.release(trial.timeout(dispatch))
    return trial.close()


def control(package, variant="conventional", trial_id=None) -> Trial:
    trial = Trial(package, trial_id or f"control-{variant}", CONTROL, variant)
    trial.open()
    dispatch = trial.dispatch()
    trial.finish(trial.answer(dispatch, trial.commit(dispatch)))
    return trial.close()


def treatment(package, variant="conventional", trial_id=None, idempotent=False) -> Trial:
    """Two effects; with `idempotent` the provider answers the retry from the first commit, so one effect."""
    trial = Trial(package, trial_id or f"treatment-{variant}", TREATMENT, variant)
    trial.open()
    first = trial.dispatch(1)
    held = trial.commit(first, "HELD")
    trial.release(trial.timeout(first))
    second = trial.dispatch(2, receive_count=2 if variant == "conventional" else 1)
    trial.finish(trial.answer(second, held if idempotent else trial.commit(second, "SPENT")))
    return trial.close()


def package_with(*stories, protocol_toml=REHEARSAL_TOML) -> Package:
    """A package with the probe and the given stories, each a function of the package."""
    package = Package(protocol_toml)
    package.add(probe(package))
    for story in stories:
        package.add(story(package))
    return package


def four_cells() -> Package:
    return package_with(
        control, lambda p: control(p, "durable"), treatment, lambda p: treatment(p, "durable")
    )
