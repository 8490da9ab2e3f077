"""Opening the lab a command works on: deployed where that is ours to do, or found as it stands."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from runner.clock import SystemClock
from runner.errors import UsageError
from runner.live.progress import Progress
from runner.names import stack_name
from runner.protocol import Protocol
from runner.runs.lease import demand_free
from runner.runs.run import Timed
from runner.targets.assembly import synthesise
from runner.targets.deployed import require_synthesised
from runner.targets.target import Lab, aws_clients, described_stack, find_on_aws, lab_from_stack


@contextlib.contextmanager
def opened(
    target: str, protocol: Protocol, clock: SystemClock, timing: dict[str, float], progress: Progress
) -> Iterator[Lab]:
    """Yield the lab to run on: found on AWS, or brought up here and ended again if it is ours."""
    name = stack_name(protocol.name)
    if target == "aws":
        with Timed(timing, "deploy", clock.monotonic):
            lab = find_on_aws(name, protocol.name)
            # The runner never deploys to AWS, but it does not run on other code than this either.
            require_synthesised(lab.client, name, synthesise(protocol.name)[0])
        timing["cloud_up"] = 0.0
        yield lab
        return
    from runner.local import cloud as local
    from runner.local.deploy import deploy

    with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as stack:
        # Synthesis and the cloud's start need nothing of each other.
        synthesis = pool.submit(synthesise, protocol.name)
        with Timed(timing, "cloud_up", clock.monotonic):
            cloud = stack.enter_context(local.ensure())
        progress.say(f"local cloud at {cloud.endpoint}" + ("" if cloud.owned else " (was already up)"))
        if not cloud.owned:
            _demand_free(protocol, clock)
        with Timed(timing, "deploy", clock.monotonic):
            assembly, fresh = synthesis.result()
            progress.say(f"stack {name} " + ("synthesised" if fresh else "unchanged, not synthesised again"))
            deploy(cloud, assembly, name)
            described = cloud.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        yield lab_from_stack("local", described, cloud.client, cloud.account, cloud.versions)


def _demand_free(protocol: Protocol, clock: SystemClock) -> None:
    """Refuse to deploy under a run that goes on: it would change what that run studies."""
    try:
        lab = standing("local", protocol)
    except UsageError:
        return  # the stack is unfit, and the deployment will say why
    if lab is not None:
        demand_free(lab.client("dynamodb"), lab.journal_table, clock.now_ms())


def standing(target: str, protocol: Protocol) -> Lab | None:
    """Return the lab as it stands, deploying and starting nothing; None when there is none.

    Raises UsageError when the stack is not at rest, and what AWS says when it cannot be asked: neither
    proves that it is gone.
    """
    if target == "aws":
        client, versions = aws_clients(), None
        account = client("sts").get_caller_identity()["Account"]
    else:
        from runner.local import launch
        from runner.local.cloud import Cloud

        running = launch.find()
        if running is None:
            return None
        cloud = Cloud(running)
        client, account, versions = cloud.client, cloud.account, cloud.versions
    described = described_stack(client, stack_name(protocol.name))
    if described is None:
        return None
    return lab_from_stack(target, described, client, account, versions)


@contextlib.contextmanager
def interruptible(stop: threading.Event) -> Iterator[None]:
    """First Ctrl-C or SIGTERM: end the trials, freeze what there is. Second: give up at once."""

    def handle(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        print("interrupted: ending the trials and freezing what there is", file=sys.stderr)
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
