"""What trials take for granted of a FIFO queue."""

from collections.abc import Iterator
from typing import Any

from runner.doctor.behaviours import Behaviour, Ground, Probe, Told
from runner.doctor.ground_stack import MAX_RECEIVES, VISIBILITY_S

# Long enough that nothing comes back while a probe is at work.
HELD_S = 60


def _send(ground: Ground, group: str, body: str, deduplication_id: str | None = None) -> str:
    return ground.client("sqs").send_message(
        QueueUrl=ground.outputs["Queue"],
        MessageBody=body,
        MessageGroupId=group,
        MessageDeduplicationId=deduplication_id or ground.fresh(),
    )["MessageId"]


def _receive(ground: Ground, queue: str = "Queue", *, wait_s: int = 0, **more: Any) -> dict | None:
    received = ground.client("sqs").receive_message(
        QueueUrl=ground.outputs[queue],
        MaxNumberOfMessages=1,
        WaitTimeSeconds=wait_s,
        MessageSystemAttributeNames=["ApproximateReceiveCount"],
        **more,
    )
    return next(iter(received.get("Messages", [])), None)


def _delete(ground: Ground, *messages: dict | None, queue: str = "Queue") -> None:
    for message in filter(None, messages):
        ground.client("sqs").delete_message(
            QueueUrl=ground.outputs[queue], ReceiptHandle=message["ReceiptHandle"]
        )


def _count(message: dict) -> int:
    return int(message["Attributes"]["ApproximateReceiveCount"])


def _life(ground: Ground) -> Iterator[Told]:
    """One message that nobody deletes: received, hidden, received again, dead-lettered."""
    sent = _send(ground, ground.fresh(), "life")
    began = ground.clock.monotonic()
    first = ground.until(lambda: _receive(ground, wait_s=1))
    early = _receive(ground)
    if ground.clock.monotonic() - began >= VISIBILITY_S:
        raise TimeoutError("this machine is too slow to look before the visibility timeout is over")
    again = ground.until(lambda: _receive(ground, wait_s=1))
    elapsed_s = ground.clock.monotonic() - began
    same = {message["MessageId"] for message in (first, again)} == {sent}
    yield Told(
        early is None and same and elapsed_s >= VISIBILITY_S,
        f"{'hidden' if early is None else 'seen'} at first, received again after {elapsed_s:.1f} s",
    )
    yield Told(
        (_count(first), _count(again)) == (1, MAX_RECEIVES),
        f"counted {_count(first)}, then {_count(again)}",
    )
    third: list[dict] = []

    def dead() -> dict | None:
        # The queue moves a message on when it would be received once more.
        if message := _receive(ground):
            third.append(message)
        return _receive(ground, "Dlq")

    letter = ground.until(dead, pause_s=0.5)
    yield Told(
        not third and letter is not None and letter["MessageId"] == sent,
        f"{len(third)} more receives, then {'in' if letter else 'not in'} the dead-letter queue",
    )
    _delete(ground, *third)
    _delete(ground, letter, queue="Dlq")


def _group_lock(ground: Ground) -> Iterator[Told]:
    """A group's second message waits for the first; another group's does not."""
    one, other = ground.fresh(), ground.fresh()
    for group, body in ((one, "1st"), (one, "2nd"), (other, "other")):
        _send(ground, group, body)
    held = {"VisibilityTimeout": HELD_S}
    first = ground.until(lambda: _receive(ground, wait_s=1, **held))
    second = ground.until(lambda: _receive(ground, wait_s=1, **held))
    third = _receive(ground, wait_s=1, **held)
    _delete(ground, first, second, third)
    last = ground.until(lambda: _receive(ground, wait_s=1, **held)) if not third else None
    _delete(ground, last)
    bodies = [message["Body"] if message else None for message in (first, second, third, last)]
    yield Told(
        bodies == ["1st", "other", None, "2nd"],
        "received " + ", ".join(str(body) for body in bodies),
    )


def _deduplication(ground: Ground) -> Iterator[Told]:
    """One deduplication id sent three times: twice while the message waits, once after its deletion."""
    group, deduplication_id = ground.fresh(), ground.fresh()
    for _ in range(2):
        _send(ground, group, "twice", deduplication_id)
    first = ground.until(lambda: _receive(ground, wait_s=1, VisibilityTimeout=HELD_S))
    _delete(ground, first)
    second = _receive(ground, wait_s=1)
    _delete(ground, second)
    yield Told(first is not None and second is None, f"{bool(first) + bool(second)} delivered of 2 sent")
    _send(ground, group, "after deletion", deduplication_id)
    late = _receive(ground, wait_s=1)
    _delete(ground, late)
    yield Told(late is None, "delivered again" if late else "not delivered")


PROBES = (
    Probe(
        (
            Behaviour("visibility_and_redelivery", "hidden for the visibility timeout, then received again"),
            Behaviour("receive_count", "1 at the first receive, 2 at the second"),
            Behaviour(
                "redrive_to_fifo_dlq", f"after {MAX_RECEIVES} receives it goes to the dead-letter queue"
            ),
        ),
        _life,
    ),
    Probe(
        (
            Behaviour(
                "message_group_lock", "a group's next message waits for the one in flight, others do not"
            ),
        ),
        _group_lock,
    ),
    Probe(
        (
            Behaviour("send_deduplication", "a repeated send of a waiting message adds none"),
            Behaviour(
                "send_deduplication_after_delete",
                "for five minutes a repeated send adds none, even after deletion",
                # Every trial sends one message, under its own id.
                relied_on=False,
            ),
        ),
        _deduplication,
    ),
)
