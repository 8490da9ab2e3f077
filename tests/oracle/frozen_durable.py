"""What the freezer reads of a durable execution: versions, listings, the execution, its history."""

from __future__ import annotations

from tests.oracle.frozen import TREATMENT, canonical, record


class DurableReads:
    """The durable part of a built trial."""

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
