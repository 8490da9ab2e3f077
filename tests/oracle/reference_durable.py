"""The reference judge looks through the durable executions of a trial."""

from __future__ import annotations

from tests.oracle.reference_evidence import Evidence
from tests.oracle.reference_words import ENDS, N, S, dig, has, is_a, listed, owner, text


class DurableEvidence(Evidence):
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
        for record in records:
            name = {"versions": "Versions", "executions": "DurableExecutions", "history": "Events"}
            if record["read"] in name:
                found = dig(record, "response", name[record["read"]])
                self.need(is_a(found, list) and len(listed(found)) == len(found), "garbled")
        shown = [
            entry.get("DurableExecutionArn")
            for r in records
            if r["read"] == "executions"
            for entry in listed(dig(r, "response", "DurableExecutions"))
        ]
        read = [r["of"] for r in records if r["read"] in ("execution", "history")]
        self.need(all(arn in shown for arn in read), "H02")
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
