"""The reference judge asks its questions of one trial and answers with a verdict."""

from __future__ import annotations

import json

from tests.oracle.reference_durable import DurableEvidence
from tests.oracle.reference_words import OUTCOMES, REFUND, dig, is_a, listed, once
from tests.oracle.template import deployed


class Trial(DurableEvidence):
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
        for seen in self.sights.values():
            settled = False
            for number, row in enumerate(seen):
                if (
                    row["status"] not in ("SUCCEEDED", "FAILED", "PENDING")
                    or settled
                    and row != seen[number - 1]
                ):
                    return False
                settled = row["status"] != "PENDING"
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
            return not self.citing(dispatch, "provider_commit_confirmed")
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
            body = json.loads(message["body"], object_pairs_hook=once)
        except (TypeError, ValueError):
            return False
        expected = {"trial_id": self.trial_id, "request": self.doc["request"]}
        arrivals = {e["event_id"] for e in self.of("delivery_received")}
        deliveries = {
            e["delivery_id"] for e in self.of("message_sent", "delivery_received", "dispatch_started")
        }
        return (
            json.dumps(body, sort_keys=True) == json.dumps(expected, sort_keys=True)
            and {message["group_id"], message["deduplication_id"]} == {self.trial_id}
            and deliveries <= {message["message_id"]}
            and len(self.of("message_sent")) == 1
            and all(d["caused_by"] in arrivals for d in self.of("dispatch_started"))
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
        if state and state["refund_request_id"] != self.doc["request"]["refund_request_id"]:
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
                or any((r["page"], r["marker_in"], r["marker_out"]) != (1, None, None) for r in records)
                or len(self.counts(read)) < window
            ):
                found.add("Q01")
            elif any(b["at_ms"] < a["at_ms"] - 1000 for a, b in zip(records, records[1:], strict=False)):
                found.add("Q06")
            elif any(sample != ["0", "0", "0"] for sample in self.counts(read)[-window:]):
                found.add(code)
        return found

    # -- answers -----------------------------------------------------------------------------------
    def verdict(self, trouble) -> str:
        if self.violated():
            starts = self.of("message_send_started")
            twice = all(len({start[fact] for start in starts}) > 1 for fact in ("seq", "event_id"))
            doubtful = len(self.effects) > 1 and twice
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
