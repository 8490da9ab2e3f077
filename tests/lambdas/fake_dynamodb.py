"""An in-memory table that is atomic under a lock and misbehaves on command.

It knows exactly the calls of the journal writer. Each transaction asks `fate()` what happens to it:

    OK        applied and answered
    LOST      applied, but the answer never arrives
    DROPPED   not applied, and no answer
    CONFLICT  cancelled because another transaction was in the way
    THROTTLE  refused before anything happened
    DELAYED   no answer now; it is applied right after the next read, if it still can be
"""

import threading

from botocore.exceptions import ClientError, ReadTimeoutError

OK, LOST, DROPPED, CONFLICT, THROTTLE, DELAYED = "OK", "LOST", "DROPPED", "CONFLICT", "THROTTLE", "DELAYED"
FATES = (OK, LOST, DROPPED, CONFLICT, THROTTLE, DELAYED)


def client_error(code, status=400, reasons=None):
    response = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
    if reasons is not None:
        response["CancellationReasons"] = [{"Code": reason} for reason in reasons]
    return ClientError(response, "TransactWriteItems")


class FakeDynamoDB:
    """`honours_tokens` False is moto's way, True the way of AWS: a known token repeats the old answer."""

    def __init__(self, fate=lambda: OK, honours_tokens=False):
        self.fate, self._honours_tokens = fate, honours_tokens
        self._lock = threading.Lock()
        self._tokens, self._delayed = {}, []
        self.items = {}
        self.transactions = 0
        self.reads_fail = 0

    def get_item(self, TableName, Key, ConsistentRead):
        assert ConsistentRead is True
        with self._lock:
            if self.reads_fail:
                self.reads_fail -= 1
                raise ReadTimeoutError(endpoint_url="http://fake")
            item = self.items.get(self._key(TableName, Key))
            answer = {"Item": dict(item)} if item else {}
            for late_items, late_token in self._delayed:
                self._apply(late_items, late_token)
            self._delayed.clear()
            return answer

    def transact_write_items(self, TransactItems, ClientRequestToken):
        with self._lock:
            self.transactions += 1
            fate = self.fate()
            if fate == DROPPED:
                raise ReadTimeoutError(endpoint_url="http://fake")
            if fate == DELAYED:
                self._delayed.append((TransactItems, ClientRequestToken))
                raise ReadTimeoutError(endpoint_url="http://fake")
            if fate == THROTTLE:
                raise client_error("ThrottlingException")
            if fate == CONFLICT:
                raise client_error(
                    "TransactionCanceledException",
                    reasons=["TransactionConflict"] + ["None"] * (len(TransactItems) - 1),
                )
            reasons = self._apply(TransactItems, ClientRequestToken)
            if any(reason != "None" for reason in reasons):
                raise client_error("TransactionCanceledException", reasons=reasons)
            if fate == LOST:
                raise ReadTimeoutError(endpoint_url="http://fake")

    def _apply(self, transact_items, token):
        """All or nothing; the reasons, in order."""
        if self._honours_tokens and token in self._tokens:
            assert self._tokens[token] == transact_items, "one token, two payloads"
            return ["None"]
        writes = [next(iter(item.items())) for item in transact_items]
        reasons = ["None" if self._holds(kind, write) else "ConditionalCheckFailed" for kind, write in writes]
        if all(reason == "None" for reason in reasons):
            self._tokens[token] = transact_items
            for kind, write in writes:
                self._write(kind, write)
        return reasons

    def _holds(self, kind, write):
        item = self.items.get(self._key(write["TableName"], write.get("Key") or write["Item"]), {})
        condition = write.get("ConditionExpression")
        if condition is None:
            return True
        if condition.startswith("attribute_not_exists("):
            return condition[len("attribute_not_exists(") : -1] not in item
        name, value = condition.split(" = ")
        return item.get(name) == write["ExpressionAttributeValues"][value]

    def _write(self, kind, write):
        if kind == "Put":
            self.items[self._key(write["TableName"], write["Item"])] = dict(write["Item"])
            return
        assert kind == "Update" and write["UpdateExpression"].startswith("SET ")
        item = self.items.setdefault(self._key(write["TableName"], write["Key"]), dict(write["Key"]))
        for assignment in write["UpdateExpression"][4:].split(", "):
            name, value = assignment.split(" = ")
            item[name] = write["ExpressionAttributeValues"][value]

    @staticmethod
    def _key(table, attributes):
        names = ("trial_id", "entry", "transaction_id") if table != "barrier" else ("trial_id",)
        # An event may carry a transaction id without it being its key.
        if "entry" in attributes:
            names = ("trial_id", "entry")
        return (table, *(attributes[name]["S"] for name in names if name in attributes))
