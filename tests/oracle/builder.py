"""Builds tiny, complete, valid packages in memory, from one-line events.

Written from evidence/FORMAT.md only. A package is a dict of documents (`docs`), so a test changes one
thing and renders again; `render()` makes the bytes and the index over them.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path

from tests.oracle import template
from tests.oracle.protocols import REHEARSAL_TOML

SQS = "https://sqs.us-east-1.amazonaws.com/000000000000/"
OUTPUTS = {
    "LedgerTable": "ledger",
    "JournalTable": "journal",
    "BarrierTable": "barrier",
    "ProviderFunction": "provider",
    "ReleaseFunction": "release",
    "ConventionalFunction": "conventional",
    "DurableFunction": "durable",
    "DurableAlias": "live",
    "ConventionalQueueUrl": SQS + "conventional.fifo",
    "ConventionalDlqUrl": SQS + "conventional-dlq.fifo",
    "DurableQueueUrl": SQS + "durable.fifo",
    "DurableDlqUrl": SQS + "durable-dlq.fifo",
}
CONTROL, TREATMENT = "CONTROL", "COMMIT_THEN_TIMEOUT"
ROLES = {
    "protocol.toml": "protocol_source",
    "protocol.json": "protocol",
    "environment.json": "environment",
    "template.json": "template",
    "run.json": "run",
}
START_MS = 1_790_000_000_000


def canonical(value) -> bytes:
    """The one byte form of a JSON value that FORMAT.md allows, without the final newline."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def typed(value):
    """A Python value in DynamoDB's low-level form."""
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        return {"N": str(value)}
    if isinstance(value, dict):
        return {"M": {key: typed(inner) for key, inner in value.items()}}
    return {"S": value}


def item(**attributes):
    return {name: typed(value) for name, value in attributes.items() if value is not None}


def record(
    read, service, operation, request, response, *, of="", page=1, at_ms=0, marker_in=None, marker_out=None
):
    return {
        "read": read,
        "service": service,
        "operation": operation,
        "page": page,
        "of": of,
        "at_ms": at_ms,
        "request": request,
        "response": response,
        "marker_in": marker_in,
        "marker_out": marker_out,
    }


class Package:
    """Documents by path: bytes stay bytes, a list becomes .jsonl, anything else canonical JSON."""

    def __init__(self, protocol_toml: str = REHEARSAL_TOML):
        source = protocol_toml.encode()
        self.protocol = tomllib.loads(protocol_toml)
        name, digest = self.protocol["study"]["name"], hashlib.sha256(source).hexdigest()
        self.outputs = {**OUTPUTS, "ProtocolName": name, "ProtocolSha256": digest}
        self.docs: dict[str, object] = {
            "protocol.toml": source,
            "protocol.json": self.protocol,
            "environment.json": environment(self.outputs, self.protocol),
            "template.json": template.deployed(self.protocol, name, digest),
            "run.json": {
                "run_id": "run-1",
                "protocol": name,
                "protocol_sha256": digest,
                "target": "local",
                "grade": "emulated",
                "stage": "run",
                "sequential": False,
                "scenarios": [],
                "probe": "probe-1",
                "started_at_ms": START_MS,
                "ended_at_ms": START_MS + 60_000,
                "trials": [],
            },
        }

    def add(self, trial: Trial) -> Package:
        run, trial_id = self.docs["run.json"], trial.trial_id
        if trial.kind == "trial":
            run["trials"].append({"trial_id": trial_id, "scenario": trial.scenario, "variant": trial.variant})
            run["scenarios"] = sorted({t["scenario"] for t in run["trials"]})
        for name, document in trial.documents().items():
            self.docs[f"trials/{trial_id}/{name}"] = document
        return self

    def render(self) -> dict[str, bytes]:
        """Every file of the package, index.json last."""
        files = {path: encode(document) for path, document in self.docs.items()}
        files["index.json"] = encode(index_of(files))
        return files

    def write(self, parent: Path) -> Path:
        return write(self.render(), parent)


def encode(document) -> bytes:
    if isinstance(document, bytes):
        return document
    if isinstance(document, list):
        return b"".join(canonical(line) + b"\n" for line in document)
    return canonical(document) + b"\n"


def role_of(path: str) -> str:
    return ROLES.get(path) or path.rsplit("/", 1)[-1].split(".")[0]


def index_of(files: dict[str, bytes]) -> dict:
    return {
        "format": "suc-evidence",
        "version": 1,
        "files": [
            {
                "path": path,
                "role": role_of(path),
                "size": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
            }
            for path, data in sorted(files.items())
            if path != "index.json"
        ],
    }


def reindex(files: dict[str, bytes]) -> dict[str, bytes]:
    """The same files under a fresh index: damage that integrity cannot see."""
    kept = {path: data for path, data in files.items() if path != "index.json"}
    return {**kept, "index.json": encode(index_of(kept))}


def write(files: dict[str, bytes], parent: Path) -> Path:
    root = Path(parent) / hashlib.sha256(files["index.json"]).hexdigest()
    for path, data in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return root


def environment(outputs, protocol):
    client = {
        "retries": {"mode": "standard", "total_max_attempts": protocol["caller"]["total_max_attempts"]},
        "connect_timeout": 1,
        "read_timeout": 4,
    }
    pong = {
        "pong": True,
        "python": "3.13.0",
        "botocore": "1.44.8",
        "boto3": "1.44.8",
        "durable_sdk": "3.0.0",
        "powertools": "3.37.0",
        "sdk_config": {"lambda": client, "dynamodb": client},
    }
    return {
        "target": "local",
        "grade": "emulated",
        "region": "us-east-1",
        "account": "000000000000",
        "started_at_ms": START_MS,
        "code": {"commit": None, "dirty": None},
        "assets": [],
        "versions": {"botocore": "1.44.8", "boto3": "1.44.8"},
        "functions": {name: pong for name in ("conventional", "durable", "provider", "release")},
        "stack": {"name": "SucStudy1Rehearsal", "status": "CREATE_COMPLETE", "outputs": outputs},
    }


class Trial:
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

    def durable_jsonl(self) -> list:
        function, arn = self.outputs["DurableFunction"], f"{self.trial_id}-execution/inv-1"
        body = self.trial_json()["message"]["body"]
        payload = canonical({"Records": [{"messageId": self.message_id, "body": body}]}).decode()
        listed = {
            "DurableExecutionArn": arn,
            "DurableExecutionName": arn,
            "FunctionArn": function,
            "Status": "SUCCEEDED",
        }

        def listing(of):
            request = {"FunctionName": function, **({"Qualifier": of} if of else {})}
            return record(
                "executions",
                "lambda",
                "ListDurableExecutionsByFunction",
                request,
                {"DurableExecutions": [listed]},
                of=of,
            )

        return [
            record(
                "versions",
                "lambda",
                "ListVersionsByFunction",
                {"FunctionName": function},
                {"Versions": [{"Version": "$LATEST"}, {"Version": "1"}]},
                of=function,
            ),
            listing(""),
            listing("$LATEST"),
            listing("1"),
            record(
                "execution",
                "lambda",
                "GetDurableExecution",
                {"DurableExecutionArn": arn},
                {**listed, "Version": "$LATEST", "InputPayload": payload},
                of=arn,
            ),
            record(
                "history",
                "lambda",
                "GetDurableExecutionHistory",
                {"DurableExecutionArn": arn, "IncludeExecutionData": True},
                {"Events": self.durable_events(payload)},
                of=arn,
            ),
        ]

    def durable_events(self, payload) -> list:
        types = [
            (
                "ExecutionStarted",
                {"ExecutionStartedDetails": {"Input": {"Payload": payload, "Truncated": False}}},
            )
        ]
        if self.scenario == TREATMENT:
            types += [
                ("StepStarted", {}),
                (
                    "StepFailed",
                    {
                        "StepFailedDetails": {
                            "RetryDetails": {"CurrentAttempt": 1, "NextAttemptDelaySeconds": 4}
                        }
                    },
                ),
                ("InvocationCompleted", {}),
            ]
        types += [
            ("StepStarted", {}),
            ("StepSucceeded", {"StepSucceededDetails": {}}),
            ("InvocationCompleted", {}),
            ("ExecutionSucceeded", {}),
        ]
        return [
            {
                "EventId": number,
                "EventType": kind,
                "EventTimestamp": f"2026-11-29T12:00:{number:02d}.000000+00:00",
                **({"Name": "refund-attempt"} if kind.startswith("Step") else {}),
                **details,
            }
            for number, (kind, details) in enumerate(types, 1)
        ]


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
