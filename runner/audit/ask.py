"""Calls that are recorded as they are made, and errors told apart: absent, or not known."""

from collections.abc import Callable
from typing import Any

from runner.errors import LabError
from runner.records import Reads
from runner.targets.accounts import Account

# How the services say that there is no such thing.
ABSENT = {
    "404",
    "AWS.SimpleQueueService.NonExistentQueue",
    "NoSuchBucket",
    "NoSuchEntity",
    "NoSuchEntityException",
    "NoSuchKey",
    "QueueDoesNotExist",
    "ResourceNotFoundException",
}


class Refused(LabError):
    """A call ended in an error; `absent` when the error says that there is no such resource."""

    def __init__(self, operation: str, code: str, message: str):
        super().__init__(
            f"AWS refused {operation}",
            found=f"{code}: {message}",
            next_step="`python -m runner doctor` says whether credentials and region are in order",
        )
        missing_stack = code == "ValidationError" and "does not exist" in message
        self.absent = code in ABSENT or missing_stack


class Asker:
    """Asks an account and keeps every answer, page by page, as read records."""

    def __init__(self, account: Account, now_ms: Callable[[], int]):
        self.account = account
        self.now_ms = now_ms
        self.reads = Reads(now_ms)

    def pages(self, service: str, operation: str, **request: Any) -> list[dict[str, Any]]:
        """Return every page of a read. Raises Refused; pages before an error do not count as all."""
        pages = self.reads.all_pages("audit", self.account.client(service), operation, request)
        self._raise_error()
        return pages

    def once(self, service: str, operation: str, **request: Any) -> dict[str, Any]:
        """Return one answer. Raises Refused."""
        answer = self.reads.once("audit", self.account.client(service), operation, request)
        self._raise_error()
        assert answer is not None
        return answer

    def _raise_error(self) -> None:
        last = self.reads.lines[-1]
        if error := last.get("error"):
            raise Refused(last["operation"], error["code"], error["message"])
