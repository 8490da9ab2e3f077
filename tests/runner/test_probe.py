"""The probe's end is waited for at a steady pace, whether or not the run is being interrupted."""

from types import SimpleNamespace

from runner import protocol
from runner.trials import probe

P = protocol.load("study-1-rehearsal")


class Clock:
    """A clock of a run that is being interrupted: `sleep` returns at once, `pause` does not."""

    def __init__(self):
        self.now_s, self.reads = 0.0, 0

    def monotonic(self):
        return self.now_s

    def now_ms(self):
        return int(self.now_s * 1000)

    def sleep(self, _seconds):
        raise AssertionError("an interrupted sleep would make this a busy loop")

    def pause(self, seconds):
        self.now_s += seconds


def lab(answer):
    client = SimpleNamespace(
        meta=SimpleNamespace(
            service_model=SimpleNamespace(service_name="dynamodb"), method_to_api_mapping={"query": "Query"}
        ),
        query=answer,
    )
    return SimpleNamespace(journal_table="J", client=lambda _service: client)


def wait(answer):
    clock = Clock()
    return probe.wait_for_end(probe.new_probe("r"), lab(answer), P, clock), clock.now_s


def test_it_gives_up_only_after_the_provider_must_be_dead():
    ended, waited_s = wait(lambda **_: {"Items": []})
    assert ended is None
    assert waited_s >= P.provider.hold_budget_s + P.provider.function_timeout_s


def test_it_says_how_the_provider_ended():
    for kind in (probe.RELEASED, probe.EXPIRED):
        assert wait(lambda kind=kind, **_: {"Items": [{"type": {"S": kind}}]})[0] == kind
