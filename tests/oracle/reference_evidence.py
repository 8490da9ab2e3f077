"""The reference judge reads one trial: documents, records, journal and ledger, and counts what is wrong."""

from __future__ import annotations

import re

from tests.oracle.reference_words import (
    CONSISTENT_QUERY,
    DETAIL,
    NEEDS,
    PAGED,
    READS,
    REFUND,
    ROW,
    SOURCES,
    N,
    S,
    has,
    is_a,
    strict,
    untyped,
)


class Evidence:
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
            facts = ("request", "response", "error", "marker_in", "marker_out")
            self.need(all(same.get(f) == record.get(f) for f in facts), what)
        ordered = [by_number[number] for number in sorted(by_number)]
        self.need([r["page"] for r in ordered] == list(range(1, len(ordered) + 1)), what)
        marker = None
        for number, record in enumerate(ordered):
            self.need("error" not in record, what)
            self.need(number == 0 or marker is not None, what)
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
        if "ScannedCount" in response and is_a(items, list):
            scanned = response["ScannedCount"]
            self.need(is_a(scanned, int) and scanned == len(items), "R07")
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
        allowed = {"TableName", "Key", "ConsistentRead", "ReturnConsumedCapacity"}
        self.need(request.get("ConsistentRead") is True and set(request) <= allowed, "barrier")
        self.need(request.get("Key") == {"trial_id": {"S": self.trial_id}}, "barrier")
        self.need(self.package.outputs.get("BarrierTable") in (None, request.get("TableName")), "barrier")
        if item is not None:
            try:
                self.barrier = {name: untyped(value) for name, value in item.items()}
            except (ValueError, AttributeError):
                self.bad.add("barrier")
            ok = has(self.barrier, {"trial_id": S, "state": S, "armed_event_id": S})
            self.need(ok and self.barrier["trial_id"] == self.trial_id, "barrier")

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
        self.snapshots, self.effects, self.certain, self.sights = [], {}, {}, {}
        numbers = {int(r["read"].rsplit("_", 1)[1]) for r in self.lines["ledger"]}
        self.need(numbers == set(range(1, len(numbers) + 1)), "L02")
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
        self.sights.setdefault(id_, []).append(row)
        if row["status"] == "SUCCEEDED":
            self.effects.setdefault(id_, row)
        if full:
            versions = self.certain.setdefault(id_, [])
            if row not in versions:
                versions.append(row)
