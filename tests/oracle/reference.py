"""A second judge, written from FORMAT.md alone, as plainly as possible and without a line of oracle/.

It asks one question at a time, keeps no structure, and says only the verdict, the effects, the processing
and the knowledge of the one trial of a package. Slow and blunt on purpose: where it and the oracle
disagree, one of them is wrong.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib

CONSISTENT_QUERY = {
    "TableName",
    "KeyConditionExpression",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
    "ConsistentRead",
    "ExclusiveStartKey",
    "Limit",
    "ScanIndexForward",
    "ReturnConsumedCapacity",
}
READS = {
    "journal": ("journal", "dynamodb", "Query"),
    "barrier": ("journal", "dynamodb", "GetItem"),
    "queue_source": ("queues", "sqs", "GetQueueAttributes"),
    "queue_dlq": ("queues", "sqs", "GetQueueAttributes"),
    "versions": ("durable", "lambda", "ListVersionsByFunction"),
    "executions": ("durable", "lambda", "ListDurableExecutionsByFunction"),
    "execution": ("durable", "lambda", "GetDurableExecution"),
    "history": ("durable", "lambda", "GetDurableExecutionHistory"),
    "logs": ("logs", "logs", "FilterLogEvents"),
}
PAGED = {
    "Query": ("ExclusiveStartKey", "LastEvaluatedKey"),
    "ListVersionsByFunction": ("Marker", "NextMarker"),
    "ListDurableExecutionsByFunction": ("Marker", "NextMarker"),
    "GetDurableExecutionHistory": ("Marker", "NextMarker"),
}
ENDS = {
    "SUCCEEDED": "ExecutionSucceeded",
    "FAILED": "ExecutionFailed",
    "TIMED_OUT": "ExecutionTimedOut",
    "STOPPED": "ExecutionStopped",
}
SOURCES = {
    "runner": "trial_opened barrier_armed message_send_started message_sent probe_invoked trial_closed",
    "caller": "delivery_received dispatch_started response_received caller_timeout_recorded attempt_failed "
    "outcome_unknown request_finished",
    "provider": "provider_request_received provider_commit_confirmed response_sent response_released "
    "barrier_expired",
    "release": "release_signalled release_refused",
}
S, N = str, int
NEEDS = {
    "message_sent": {"delivery_id": S},
    "delivery_received": {"delivery_id": S, "receive_count": N, "lambda_request_id": S},
    "dispatch_started": {"attempt": N, "delivery_id": S, "lambda_request_id": S, "caused_by": S},
    "response_received": {"transaction_id": S, "elapsed_ms": N, "caused_by": S},
    "caller_timeout_recorded": {"elapsed_ms": N, "caused_by": S},
    "attempt_failed": {"caused_by": S},
    "outcome_unknown": {"caused_by": S},
    "request_finished": {"caused_by": S},
    "provider_request_received": {"attempt": N, "lambda_request_id": S, "caused_by": S},
    "provider_commit_confirmed": {"attempt": N, "transaction_id": S, "caused_by": S},
    "response_sent": {"caused_by": S},
    "response_released": {"caused_by": S},
    "release_signalled": {"caused_by": S},
}
DETAIL = {
    "caller_timeout_recorded": ("deadline_ms", N),
    "attempt_failed": ("code", S),
    "provider_commit_confirmed": ("barrier", S),
}
OUTCOMES = ("response_received", "caller_timeout_recorded", "attempt_failed", "outcome_unknown")
ROW = {
    "trial_id": S,
    "transaction_id": S,
    "refund_request_id": S,
    "payment_id": S,
    "amount_minor": N,
    "currency": S,
    "status": S,
    "seq": N,
    "dispatch_event_id": S,
    "attempt": N,
    "provider_request_id": S,
    "committed_at_ms": N,
}
OUTPUTS = [
    "LedgerTable",
    "JournalTable",
    "BarrierTable",
    "DurableFunction",
    "ProtocolName",
    "ProtocolSha256",
] + ["ConventionalQueueUrl", "ConventionalDlqUrl", "DurableQueueUrl", "DurableDlqUrl"]
REFUND = {"refund_request_id": S, "payment_id": S, "captured_minor": N, "approved_minor": N, "currency": S}


def is_a(value, kind) -> bool:
    return type(value) is kind


def has(document, members) -> bool:
    return is_a(document, dict) and all(is_a(document.get(name), kind) for name, kind in members.items())


def dig(value, *steps):
    """The member at the end of the steps, or None wherever there is none."""
    for step in steps:
        value = value.get(step) if is_a(value, dict) else None
    return value


def text(value) -> str:
    return value if is_a(value, str) else "?"


def listed(value) -> list:
    return [each for each in value if is_a(each, dict)] if is_a(value, list) else []


def strict(data: bytes):
    """The value of one canonical line, or None."""
    try:
        value = json.loads(data.decode(), parse_float=lambda _: 1 / 0)
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return (value,) if text.encode() == data and not wild(value) else None
    except (ValueError, ZeroDivisionError, RecursionError):
        return None


def wild(value, depth=1) -> bool:
    if is_a(value, int):
        return abs(value) > 2**53 - 1
    inner = list(value.values()) if is_a(value, dict) else value if is_a(value, list) else []
    return (depth > 64 and is_a(value, (dict))) or any(wild(each, depth + 1) for each in inner)


def untyped(value):
    """A DynamoDB value as Python; raises ValueError if it is not one."""
    if not is_a(value, dict) or len(value) != 1:
        raise ValueError
    [(kind, inner)] = value.items()
    if kind == "S" and is_a(inner, str) or kind == "BOOL" and is_a(inner, bool):
        return inner
    if kind == "N" and is_a(inner, str) and re.fullmatch("-?(0|[1-9][0-9]{0,15})", inner):
        return int(inner)
    if kind == "M" and is_a(inner, dict):
        return {name: untyped(each) for name, each in inner.items()}
    if kind == "L" and is_a(inner, list):
        return [untyped(each) for each in inner]
    if kind == "NULL" and inner is True:
        return None
    raise ValueError


class Reference:
    """One pass over the files; `wrong` collects the kinds of trouble, `invalid` the breaches of protocol."""

    def __init__(self, files: dict[str, bytes]):
        self.files, self.wrong, self.violations = files, set(), set()
        self.run = self.document("run.json")
        self.protocol = self.document("protocol.json")
        self.environment = self.document("environment.json")
        self.template = self.document("template.json")
        self.package()

    def document(self, path):
        data = self.files.get(path)
        if data is None or not data.endswith(b"\n") or data.count(b"\n") != 1:
            self.wrong.add(path)
            return {}
        found = strict(data[:-1])
        if found is None or not is_a(found[0], dict):
            self.wrong.add(path)
            return {}
        return found[0]

    def package(self):
        try:
            toml = tomllib.loads(self.files["protocol.toml"].decode())
            digest = hashlib.sha256(self.files["protocol.toml"]).hexdigest()
        except (KeyError, ValueError):
            toml, digest = None, None
        if json.dumps(toml, sort_keys=True) != json.dumps(self.protocol, sort_keys=True):
            self.wrong.add("protocol")
            self.protocol = {}
        outputs = self.environment.get("stack", {})
        self.outputs = (
            outputs.get("outputs", {}) if is_a(outputs, dict) and is_a(outputs.get("outputs"), dict) else {}
        )
        name = self.protocol.get("study", {}).get("name")
        named = [
            (self.run.get("protocol"), self.run.get("protocol_sha256")),
            (self.outputs.get("ProtocolName"), self.outputs.get("ProtocolSha256")),
        ]
        self.need(named == [(name, digest)] * 2, "named")
        targets = [(d.get("target"), d.get("grade")) for d in (self.run, self.environment)]
        allowed = [("local", "emulated"), ("aws", "aws"), ("aws", "emulated")]
        self.need(targets[0] == targets[1] and targets[0] in allowed, "target")
        self.need(is_a(self.template.get("Resources"), dict), "template")
        if not self.need(well_formed_package(self), "members"):
            self.outputs = {}  # half an environment says nothing about which tables are the stack's

    def need(self, condition, what):
        if not condition:
            self.wrong.add(what)
        return condition

    # -- the trial ---------------------------------------------------------------------------------
    def judge(self):
        trials = self.run.get("trials") if is_a(self.run.get("trials"), list) else []
        ids = [t.get("trial_id") for t in trials if is_a(t, dict)]
        ids = [name for name in ids if is_a(name, str)]
        folders = {path.split("/")[1] for path in self.files if path.startswith("trials/")}
        probe = self.run.get("probe") if is_a(self.run.get("probe"), str) else None
        self.need(
            len(ids) == 1 and folders == {*ids, probe} and probe not in ids and probe in folders, "folders"
        )
        (trial_id,) = [name for name in folders if name != "probe-1"]
        listed = next((t for t in trials if is_a(t, dict) and t.get("trial_id") == trial_id), {})
        probe_trouble = Trial(self, "probe-1", {}, True).trouble()
        trial = Trial(self, trial_id, listed, False)
        trouble = trial.trouble()
        if probe_trouble or self.wrong:
            trouble.add("package")
        return trial.verdict(trouble), len(trial.effects), trial.processing(), trial.knowledge()


def well_formed_package(package) -> bool:
    run, environment, protocol = package.run, package.environment, package.protocol
    return (
        has(run, dict.fromkeys(["run_id", "protocol", "protocol_sha256", "target", "grade", "stage"], S))
        and has(
            run, {"sequential": bool, "scenarios": list, "started_at_ms": N, "ended_at_ms": N, "trials": list}
        )
        and all(is_a(s, str) for s in run["scenarios"])
        and (run.get("probe", 0) is None or is_a(run.get("probe"), str))
        and all(has(t, {"trial_id": S, "scenario": S, "variant": S}) for t in run["trials"])
        and has(
            environment,
            {
                "target": S,
                "grade": S,
                "region": S,
                "account": S,
                "started_at_ms": N,
                "code": dict,
                "assets": list,
                "versions": dict,
                "functions": dict,
                "stack": dict,
            },
        )
        and has(environment["stack"], {"name": S, "status": S, "outputs": dict})
        and has(environment["stack"]["outputs"], dict.fromkeys(OUTPUTS, S))
        and {"commit", "dirty"} <= environment["code"].keys()
        and type(environment["code"]["commit"]) in (str, type(None))
        and type(environment["code"]["dirty"]) in (bool, type(None))
        and bool(protocol)
    )


class Trial:
    def __init__(self, package, trial_id, listed, probe):
        self.package, self.trial_id, self.probe = package, trial_id, probe
        self.bad: set[str] = set()
        folder = f"trials/{trial_id}/"
        self.folder = folder
        before = set(package.wrong)
        self.doc = package.document(folder + "trial.json")
        if package.wrong - before:
            self.bad.add("trial.json")
        package.wrong.clear()
        package.wrong |= before
        self.scenario = (listed or self.doc).get("scenario")
        self.variant = (listed or self.doc).get("variant")
        self.check_document(listed)
        self.lines = {name: self.read(name) for name in ("journal", "ledger", "queues", "durable", "logs")}
        self.read_journal()
        self.read_ledger()

    def need(self, condition, what):
        if not condition:
            self.bad.add(what)
        return condition

    def check_document(self, listed):
        doc, run = self.doc, self.package.run
        ok = has(
            doc,
            {
                "trial_id": S,
                "run_id": S,
                "kind": S,
                "scenario": S,
                "variant": S,
                "request": dict,
                "armed": bool,
                "started_at_ms": N,
                "ended_at_ms": N,
                "ended_because": S,
                "quiescence": dict,
                "driver": dict,
            },
        )
        ok = ok and has(doc["request"], REFUND) and has(doc["quiescence"], {"samples": N, "interval_s": N})
        ok = ok and has(doc["driver"], {"total_max_attempts": N, "sends": N, "source_queue_receives": N})
        ok = ok and {"message", "queues", "error"} <= doc.keys() and type(doc["error"]) in (str, type(None))
        message, queues = doc.get("message"), doc.get("queues")
        ok = ok and (
            message is None
            or has(message, dict.fromkeys(("message_id", "group_id", "deduplication_id", "body"), S))
            and "sequence_number" in message
            and type(message["sequence_number"]) in (str, type(None))
        )
        ok = ok and (queues is None or has(queues, {"source": S, "dlq": S}))
        if not self.need(ok, "T02"):
            self.doc = {}
            return
        expected = {
            **listed,
            "trial_id": self.trial_id,
            "run_id": run.get("run_id"),
            "kind": "probe" if self.probe else "trial",
        }
        self.need(all(doc.get(name) == value for name, value in expected.items()), "T03")

    def read(self, name):
        """The well-formed records of a file; anything else in it is trouble."""
        data = self.package.files.get(f"{self.folder}{name}.jsonl")
        if data is None:
            wanted = name in ("journal", "ledger") or (
                not self.probe and (name == "queues" or (name == "durable" and self.variant == "durable"))
            )
            self.need(not wanted, "T01")
            return []
        lines = data.split(b"\n")
        self.need(lines.pop() == b"", "J04")
        good = []
        for line in lines:
            found = strict(line)
            record = found[0] if found else None
            ok = has(
                record,
                {"read": S, "service": S, "operation": S, "page": N, "of": S, "at_ms": N, "request": dict},
            )
            ok = ok and {"marker_in", "marker_out"} <= record.keys()
            extra = (
                set(record)
                - {
                    "read",
                    "service",
                    "operation",
                    "page",
                    "of",
                    "at_ms",
                    "request",
                    "marker_in",
                    "marker_out",
                }
                if ok
                else set()
            )
            ok = ok and (
                extra == {"response"}
                and is_a(record["response"], dict)
                or extra == {"error"}
                and has(record["error"], {"code": S, "message": S})
            )
            kind = ok and (
                ("ledger", "dynamodb", "Query")
                if re.fullmatch("ledger_snapshot_[1-9][0-9]{0,5}", record["read"])
                else READS.get(record["read"])
            )
            if self.need(ok and kind == (name, record["service"], record["operation"]), "R01"):
                good.append(record)
        return good

    def pages(self, records, what):
        """Trouble unless the records are pages 1..n of one read, each beginning where the last ended."""
        by_number = {}
        for record in records:
            same = by_number.setdefault(record["page"], record)
            facts = ("request", "response", "marker_out")
            self.need(all(same.get(f) == record.get(f) for f in facts), what)
        ordered = [by_number[number] for number in sorted(by_number)]
        self.need([r["page"] for r in ordered] == list(range(1, len(ordered) + 1)), what)
        marker = None
        for record in ordered:
            self.need("error" not in record, what)
            start, following = PAGED.get(record["operation"], (None, None))
            self.need(record["marker_in"] == marker == record["request"].get(start), what)
            self.need((record.get("response", {}).get(following) or None) == record["marker_out"], what)
            marker = record["marker_out"]
        self.need(marker is None, what)
        return ordered

    def query(self, record, table):
        request = record["request"]
        names = request.get("ExpressionAttributeNames") or {}
        condition = re.fullmatch(r"\s*(#?\w+)\s*=\s*(:\w+)\s*", str(request.get("KeyConditionExpression")))
        key = condition and (names.get(condition[1]) if condition[1].startswith("#") else condition[1])
        self.need(request.get("ConsistentRead") is True and set(request) <= CONSISTENT_QUERY, "R05")
        self.need(
            condition
            and key == "trial_id"
            and request.get("ExpressionAttributeValues") == {condition[2]: {"S": self.trial_id}},
            "R06",
        )
        self.need(self.package.outputs.get(table) in (None, request.get("TableName")), "R09")
        response = record.get("response", {})
        items = response.get("Items")
        self.need(
            is_a(items, list) and is_a(response.get("Count"), int) and response["Count"] == len(items), "R07"
        )
        return items if is_a(items, list) else []

    # -- journal -----------------------------------------------------------------------------------
    def read_journal(self):
        self.events, self.request, self.counter, self.barrier = [], None, None, None
        before = set(self.bad)
        self.bad = set()
        records = [r for r in self.lines["journal"] if r["read"] == "journal"]
        self.need(records, "journal")
        for record in self.pages(records, "journal pages"):
            for item in self.query(record, "JournalTable"):
                self.journal_item(item)
        self.events.sort(key=lambda e: e["seq"])
        self.need(
            [e["seq"] for e in self.events] == list(range(1, len(self.events) + 1)) and self.events, "G02"
        )
        self.need(self.events and self.counter == len(self.events), "G03")
        seen = set()
        for event in self.events:
            self.need(event["event_id"] not in seen, "G04")
            self.need("caused_by" not in event or event["caused_by"] in seen, "G04")
            seen.add(event["event_id"])
        types = [e["type"] for e in self.events]
        self.need(types[:1] == ["trial_opened"] and types[-1:] == ["trial_closed"], "G05")
        self.need(types.count("trial_opened") == types.count("trial_closed") == 1, "G05")
        self.read_barrier()
        journal_lines = self.package.files.get(f"{self.folder}journal.jsonl", b"").count(b"\n")
        self.whole = not self.bad and len(self.lines["journal"]) == journal_lines and "J04" not in before
        self.bad |= before

    def read_barrier(self):
        records = self.pages([r for r in self.lines["journal"] if r["read"] == "barrier"], "barrier")
        if not self.need(records, "barrier"):
            return
        request, item = records[0]["request"], records[0].get("response", {}).get("Item")
        self.need(request.get("ConsistentRead") is True and "ProjectionExpression" not in request, "barrier")
        self.need(request.get("Key") == {"trial_id": {"S": self.trial_id}}, "barrier")
        self.need(self.package.outputs.get("BarrierTable") in (None, request.get("TableName")), "barrier")
        if item is not None:
            try:
                self.barrier = {name: untyped(value) for name, value in item.items()}
            except (ValueError, AttributeError):
                self.bad.add("barrier")
            self.need(has(self.barrier, {"trial_id": S, "state": S, "armed_event_id": S}), "barrier")

    def journal_item(self, item):
        try:
            row = {name: untyped(value) for name, value in item.items()}
        except (ValueError, AttributeError):
            self.bad.add("G01")
            return
        if row.get("trial_id") != self.trial_id:
            self.bad.add("G01")
        elif row.get("entry") == "COUNTER":
            self.need(is_a(row.get("n"), int) and self.counter is None, "G01")
            self.counter = row.get("n")
        elif row.get("entry") == "REQUEST":
            ok = has(row, {"refund_request_id": S, "status": S}) and self.request is None
            ok = ok and all(is_a(row[name], str) for name in ("reason", "effect_knowledge") if name in row)
            if self.need(ok, "G01"):
                self.request = row
        elif self.need(
            has(row, {"entry": S, "seq": N, "event_id": S, "source": S, "type": S, "at_ms": N})
            and row["entry"] == "EVENT#" + str(row["seq"]).zfill(6),
            "G01",
        ):
            optional = {"caused_by": S, "attempt": N, "detail": dict}
            self.need(all(is_a(row[name], kind) for name, kind in optional.items() if name in row), "G01")
            self.need(row["type"] in SOURCES.get(row["source"], "").split(), "G06")
            self.need(has(row, NEEDS.get(row["type"], {})), "G01")
            if row["type"] in DETAIL:
                name, kind = DETAIL[row["type"]]
                self.need(has(row.get("detail"), {name: kind}), "G01")
            self.events.append(row)

    def of(self, *types):
        return [e for e in self.events if e["type"] in types]

    def citing(self, event, *types):
        return [e for e in self.of(*types) if e.get("caused_by") == event["event_id"]]

    # -- ledger ------------------------------------------------------------------------------------
    def read_ledger(self):
        self.snapshots, self.effects, self.certain = [], {}, {}
        numbers = {int(r["read"].rsplit("_", 1)[1]) for r in self.lines["ledger"]}
        for number in sorted(numbers):
            records = [r for r in self.lines["ledger"] if r["read"] == f"ledger_snapshot_{number}"]
            snapshot = {}
            self.pages(records, "ledger pages")
            for record in records:
                for item in self.query(record, "LedgerTable"):
                    self.ledger_item(item, snapshot)
            self.snapshots.append(snapshot)

    def ledger_item(self, item, snapshot):
        row = {}
        for name, value in item.items() if is_a(item, dict) else ():
            try:
                row[name] = untyped(value)
            except ValueError:
                self.bad.add("L01")
        if not self.need(
            has(row, {"trial_id": S, "transaction_id": S, "status": S}) and row["trial_id"] == self.trial_id,
            "L01",
        ):
            return
        full = self.need(has(row, ROW) and row["amount_minor"] > 0, "L01")
        id_ = row["transaction_id"]
        self.need(snapshot.setdefault(id_, row) == row, "L01")
        if row["status"] == "SUCCEEDED":
            self.effects.setdefault(id_, row)
        if full:
            versions = self.certain.setdefault(id_, [])
            if row not in versions:
                versions.append(row)

    # -- questions ---------------------------------------------------------------------------------
    def trouble(self) -> set[str]:
        """Everything that stands between this trial and a pass."""
        found = set(self.bad)
        if self.bad - {"T03"} and not self.doc:
            return found | {"document"}
        for question in (
            self.ledger_settled,
            self.journal_consistent,
            self.protocol_applied,
            self.driver_clean,
        ):
            found |= {question.__name__} if not question() else set()
        found |= set() if self.probe else self.ended()
        return found

    def ledger_settled(self) -> bool:
        if len(self.snapshots) < 2 or self.snapshots[-1] != self.snapshots[-2]:
            return False
        last = self.snapshots[-1]
        if any(set(snapshot) - set(last) for snapshot in self.snapshots):
            return False
        if any(row["status"] not in ("SUCCEEDED", "FAILED") for row in last.values()):
            return False
        commits = self.of("provider_commit_confirmed")
        said = {c.get("transaction_id"): (c["seq"], c.get("caused_by"), c.get("attempt")) for c in commits}
        rows = {
            id_: (row.get("seq"), row.get("dispatch_event_id"), row.get("attempt"))
            for id_, row in last.items()
            if row["status"] == "SUCCEEDED"
        }
        answered = {e.get("transaction_id") for e in self.of("response_received")}
        return (
            len(said) == len(commits)
            and said == rows
            and set(self.effects) == set(rows)
            and answered <= set(rows)
        )

    def journal_consistent(self) -> bool:
        if not self.whole:
            return False
        dispatches = self.of("dispatch_started")
        ids = {d["event_id"] for d in dispatches}
        if not dispatches or any(e["caused_by"] not in ids for e in self.of(*OUTCOMES)):
            return False
        return all(len(self.citing(d, *OUTCOMES)) <= 1 and self.settled(d) for d in dispatches)

    def settled(self, dispatch) -> bool:
        if any(e["detail"]["code"] == "INVALID_REQUEST" for e in self.citing(dispatch, "attempt_failed")):
            return True
        if not self.citing(dispatch, "provider_request_received"):
            return False
        if self.citing(dispatch, "response_received"):
            return True
        for commit in self.citing(dispatch, "provider_commit_confirmed"):
            if self.citing(commit, "response_sent", "barrier_expired"):
                return True
        return any(
            self.citing(release, "response_released")
            for timeout in self.citing(dispatch, "caller_timeout_recorded")
            for release in self.citing(timeout, "release_signalled")
        )

    def definite(self, dispatch) -> bool:
        return any(
            e["type"] == "response_received"
            or (e["type"] == "attempt_failed" and e["detail"]["code"] == "INVALID_REQUEST")
            for e in self.citing(dispatch, *OUTCOMES)
        )

    def driver_clean(self) -> bool:
        driver = self.doc["driver"]
        starts = self.of("probe_invoked" if self.probe else "message_send_started")
        return (
            len(starts) == 1
            and driver["sends"] in ((0, 1) if self.probe else (1,))
            and driver["total_max_attempts"] == 1
            and driver["source_queue_receives"] == 0
        )

    def protocol_applied(self) -> bool:
        protocol, doc = self.package.protocol, self.doc
        if not protocol or not self.whole or doc["request"] != {**doc["request"], **protocol["refund"]}:
            return False
        if doc["quiescence"]["samples"] != protocol["quiescence"]["samples"]:
            return False
        if not self.probe and {"scenario": self.scenario, "variant": self.variant} not in protocol["order"]:
            return False
        return self.deployed() and self.wire() and (self.probe or self.message()) and self.scenario_applied()

    def message(self) -> bool:
        message = self.doc["message"]
        try:
            body = json.loads(message["body"])
        except (TypeError, ValueError):
            return False
        deliveries = {
            e["delivery_id"] for e in self.of("message_sent", "delivery_received", "dispatch_started")
        }
        return (
            body == {"trial_id": self.trial_id, "request": self.doc["request"]}
            and {message["group_id"], message["deduplication_id"]} == {self.trial_id}
            and deliveries <= {message["message_id"]}
        )

    def wire(self) -> bool:
        try:
            function = self.package.environment["functions"][self.variant]
            attempts = function["sdk_config"]["lambda"]["retries"]["total_max_attempts"]
            version = function["botocore"]
        except (KeyError, TypeError):
            return False
        ids = {d["event_id"] for d in self.of("dispatch_started")}
        kinds = ("provider_request_received", "provider_commit_confirmed")
        return (
            is_a(attempts, int)
            and attempts == self.package.protocol["caller"]["total_max_attempts"]
            and is_a(version, str)
            and all(e["caused_by"] in ids for e in self.of(*kinds))
            and all(len(self.citing(d, kind)) <= 1 for d in self.of("dispatch_started") for kind in kinds)
        )

    def deployed(self) -> bool:
        """The generator changes only whole numbers of resources it knows by name."""
        from tests.oracle.template import deployed

        protocol = self.package.protocol
        good = deployed(protocol, "", "")["Resources"]
        prefix = str(self.variant).capitalize()
        names = (
            "Provider",
            "Release",
            "ReleaseMapping",
            prefix,
            prefix + "Mapping",
            prefix + "Queue",
            prefix + "Dlq",
        )
        found = self.package.template.get("Resources", {})
        return all(name in good and found.get(name) == good[name] for name in names)

    def scenario_applied(self) -> bool:
        if self.scenario == "CONTROL":
            touched = self.of(
                "barrier_armed",
                "release_signalled",
                "release_refused",
                "response_released",
                "barrier_expired",
            )
            return (
                not touched
                and self.barrier is None
                and not self.doc["armed"]
                and all(self.definite(d) for d in self.of("dispatch_started"))
                and all(c["detail"]["barrier"] == "NONE" for c in self.of("provider_commit_confirmed"))
            )
        return self.scenario == "COMMIT_THEN_TIMEOUT" and self.exposed() and (self.probe or self.retriable())

    def exposed(self) -> bool:
        held = [c for c in self.of("provider_commit_confirmed") if c["detail"]["barrier"] == "HELD"]
        armed, sent = (
            self.of("barrier_armed"),
            self.of("probe_invoked" if self.probe else "message_send_started"),
        )
        releases, released = self.of("release_signalled"), self.of("response_released")
        timeouts = [
            t for t in self.of("caller_timeout_recorded") if held and t["caused_by"] == held[0]["caused_by"]
        ]
        if not (len(held) == len(timeouts) == len(releases) == len(released) == len(armed) == 1 and sent):
            return False
        (h,), (t,), (r,), (out,), (a,) = held, timeouts, releases, released, armed
        item = {
            "state": "RELEASED",
            "held_dispatch_event_id": h["caused_by"],
            "held_event_id": h["event_id"],
            "released_by_event_id": t["event_id"],
            "release_event_id": r["event_id"],
            "armed_event_id": a["event_id"],
        }
        deadline = self.package.protocol["caller"]["deadline_ms"]
        return (
            self.doc["armed"]
            and not self.of("barrier_expired")
            and a["seq"] < sent[0]["seq"]
            and h["seq"] < t["seq"] < r["seq"] < out["seq"]
            and r["caused_by"] == t["event_id"]
            and out["caused_by"] == r["event_id"]
            and item == {name: (self.barrier or {}).get(name) for name in item}
            and all(
                e["elapsed_ms"] >= deadline == e["detail"]["deadline_ms"]
                for e in self.of("caller_timeout_recorded")
            )
        )

    def retriable(self) -> bool:
        first = min((t["seq"] for t in self.of("caller_timeout_recorded")), default=None)
        if first is None or any(e["seq"] > first for e in self.of("dispatch_started", "delivery_received")):
            return first is not None
        events = [
            event
            for read in self.lines["durable"]
            for event in listed(dig(read, "response", "Events"))
            if read["read"] == "history" and dig(event, "EventType") == "StepFailed"
        ]
        steps = ("StepFailedDetails", "RetryDetails", "NextAttemptDelaySeconds")
        return any(is_a(dig(event, *steps), int) for event in events)

    def ended(self) -> set[str]:
        found = set()
        state = self.request or {}
        finishes = self.of("request_finished")
        good = {e["event_id"]: "SUCCEEDED" for e in self.of("response_received")}
        good |= {e["event_id"]: "PROVIDER_REFUSED" for e in self.of("attempt_failed")}
        finished = state.get("status") == "FINISHED"
        if finished != (len(finishes) == 1) or len(finishes) > 1:
            found.add("G07")
        elif not finished:
            found.add("Q04")
        elif good.get(finishes[0].get("caused_by")) is None or good[finishes[0]["caused_by"]] != state.get(
            "reason"
        ):
            found.add("G07")
        if finishes and state.get("effect_knowledge") not in ("KNOWN", "UNKNOWN"):
            found.add("G10")
        if (
            self.of("caller_timeout_recorded", "outcome_unknown")
            and state.get("effect_knowledge") != "UNKNOWN"
        ):
            found.add("G10")
        if self.doc["ended_because"] != "quiescent" or self.doc["error"] is not None:
            found.add("Q05")
        found |= self.queues_trouble()
        if self.variant == "durable":
            found |= self.durable_trouble()
        return found

    def counts(self, read):
        names = (
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        )
        samples = [r for r in self.lines["queues"] if r["read"] == read]
        samples = [r for n, r in enumerate(samples) if r not in samples[:n]]
        return [[dig(r, "response", "Attributes", n) for n in names] for r in samples]

    def queues_trouble(self) -> set[str]:
        if len(self.counts("queue_source")) != len(self.counts("queue_dlq")):
            return {"Q01"}
        found, window = set(), self.package.protocol.get("quiescence", {}).get("samples", 10**6)
        for read, code, output in (("queue_source", "Q02", "QueueUrl"), ("queue_dlq", "Q03", "DlqUrl")):
            records = [r for r in self.lines["queues"] if r["read"] == read]
            url = self.package.outputs.get(str(self.variant).capitalize() + output)
            if (
                any("error" in r or r["request"].get("QueueUrl") != url for r in records)
                or len(self.counts(read)) < window
            ):
                found.add("Q01")
            elif any(sample != ["0", "0", "0"] for sample in self.counts(read)[-window:]):
                found.add(code)
        return found

    def durable_trouble(self) -> set[str]:
        before, self.bad = self.bad, set()
        self.durable_questions()
        found, self.bad = self.bad, before
        return found

    def durable_questions(self):
        function = self.package.outputs.get("DurableFunction")
        records = self.lines["durable"]
        groups = {}
        for record in records:
            groups.setdefault((record["read"], record["of"]), []).append(record)
        for (_, _), reads in groups.items():
            self.pages(reads, "durable pages")
        versions = [
            v.get("Version")
            for r in records
            if r["read"] == "versions"
            for v in listed(dig(r, "response", "Versions"))
        ]
        self.need(versions and all(is_a(v, str) for v in versions), "H01")
        self.need(all(("executions", text(of)) in groups for of in ["", *versions]), "H02")
        statuses, owners = {}, {}
        for record in records:
            request, response = record["request"], record.get("response", {})
            if record["read"] in ("versions", "executions"):
                self.need(request.get("FunctionName") == function, "R09")
            if record["read"] == "executions":
                allowed = {"FunctionName", "Qualifier", "Marker", "MaxItems", "ReverseOrder"}
                self.need(set(request) <= allowed and request.get("Qualifier", "") == record["of"], "H02")
                self.need(is_a(response.get("DurableExecutions"), list), "H02")
                for entry in listed(response.get("DurableExecutions")):
                    self.need(is_a(entry.get("DurableExecutionArn"), str), "H02")
                    arn = text(entry.get("DurableExecutionArn"))
                    statuses.setdefault(arn, set()).add(text(entry.get("Status")))
            if record["read"] == "execution":
                arn = text(response.get("DurableExecutionArn"))
                self.need(arn == record["of"] == request.get("DurableExecutionArn"), "R09")
                statuses.setdefault(arn, set()).add(text(response.get("Status")))
                owners[arn] = owner(response.get("InputPayload"))
        own = [arn for arn in statuses if owners.get(arn, self.trial_id) in (None, self.trial_id)]
        for arn in own:
            ended = [s for s in statuses[arn] if s in ENDS]
            self.need(ended, "H03")
            if arn in owners:
                self.history(arn, ended, groups.get(("history", arn), []), owners[arn])
        self.need([arn for arn in own if arn in owners], "H07")

    def history(self, arn, ended, reads, owned_by):
        events = {}
        for record in reads:
            request = record["request"]
            self.need(request.get("DurableExecutionArn") == arn, "R09")
            self.need(
                request.get("IncludeExecutionData", True) is True and request.get("ReverseOrder") is not True,
                "H06",
            )
            for event in listed(dig(record, "response", "Events")):
                if self.need(has(event, {"EventId": N, "EventType": S}), "H04"):
                    self.need(events.setdefault(event["EventId"], event) == event, "H05")
        types = [events[number]["EventType"] for number in sorted(events)]
        ends = [t for t in types if t in ENDS.values()]
        whole = (
            types[:1] == ["ExecutionStarted"]
            and len(ended) == len(ends) == 1
            and types[-1:] == [ENDS[ended[0]]]
        )
        if self.need(whole, "H04"):
            given = events[min(events)].get("ExecutionStartedDetails")
            given = given.get("Input") if is_a(given, dict) else None
            self.need(
                is_a(given, dict)
                and given.get("Truncated") is not True
                and owner(given.get("Payload")) == owned_by == self.trial_id,
                "H06",
            )

    # -- answers -----------------------------------------------------------------------------------
    def verdict(self, trouble) -> str:
        if self.violated():
            doubtful = len(self.effects) > 1 and len(self.of("message_send_started")) > 1
            return "indeterminate" if doubtful else "fail"
        if not self.effects and self.nothing_happened(trouble):
            return "fail"
        return "pass" if not trouble and len(self.effects) == 1 else "indeterminate"

    def nothing_happened(self, trouble) -> bool:
        if not self.doc:
            return False
        lifted = {"Q03", "Q04"} if self.processing() == "DEAD_LETTERED" else set()
        return trouble <= lifted | {"protocol_applied"} and bool(self.package.protocol)

    def violated(self) -> bool:
        if len(self.effects) > 1:
            return True
        own, approved = self.doc.get("request"), self.package.protocol.get("refund")
        if own and approved and any(own[name] != approved[name] for name in REFUND):
            return False
        request = own or approved
        certain = [
            versions[0]
            for versions in self.certain.values()
            if len(versions) == 1 and versions[0]["status"] == "SUCCEEDED"
        ]
        return bool(request) and any(
            (row["refund_request_id"], row["payment_id"], row["amount_minor"], row["currency"])
            != (
                request["refund_request_id"],
                request["payment_id"],
                request["approved_minor"],
                request["currency"],
            )
            or row["payment_id"] == request["payment_id"]
            and row["amount_minor"] > request["captured_minor"]
            for row in certain
        )

    def processing(self) -> str:
        state, dlq = self.request or {}, self.counts("queue_dlq")[-2:]
        if state.get("status") == "FINISHED":
            return (
                state.get("reason") if state.get("reason") in ("SUCCEEDED", "PROVIDER_REFUSED") else "UNKNOWN"
            )
        if len(dlq) == 2 and dlq[0] == dlq[1] and str(dlq[0][0]).isdigit() and int(dlq[0][0]) > 0:
            return "DEAD_LETTERED"
        return "IN_PROGRESS" if state.get("status") == "IN_PROGRESS" else "UNKNOWN"

    def knowledge(self) -> str:
        dispatches = self.of("dispatch_started")
        return "KNOWN" if self.whole and dispatches and all(map(self.definite, dispatches)) else "UNKNOWN"


def owner(payload):
    """The trial that an input names, "" for a warm-up, None if it cannot be told."""
    try:
        event = json.loads(payload)
        if event.get("ping") is True and "Records" not in event:
            return ""
        (name,) = {json.loads(record["body"])["trial_id"] for record in event["Records"]}
        return name if is_a(name, str) else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def judge(files: dict[str, bytes]):
    """(verdict, effects, processing, knowledge) of the one trial of a package whose index is true."""
    return Reference(files).judge()
