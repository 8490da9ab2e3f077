"""`python -m runner run`: from the asked target to the printed result."""

import argparse
import contextlib
import json
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from rich.console import Console

from runner import protocol as protocols
from runner import result as results
from runner.assembly import synthesise
from runner.clock import SystemClock
from runner.names import SCENARIOS, VARIANTS, stack_name
from runner.progress import Progress
from runner.protocol import Protocol
from runner.records import canonical
from runner.run import Run, Timed
from runner.target import Lab, choose, find_on_aws, lab_from_stack


def run_command(args: argparse.Namespace) -> int:
    """Run what was asked and return the exit code. Raises LabError for what a user can act on."""
    protocol = protocols.load(args.protocol)
    scenarios = tuple(args.scenario or SCENARIOS)
    cells = protocol.cells(scenarios, (args.variant,) if args.variant else VARIANTS)
    target, announcement = choose(args.target)
    print(announcement, file=sys.stderr)
    stop = threading.Event()
    clock = SystemClock(stop)
    timing: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(_interrupts(stop))
        stack.enter_context(Timed(timing, "total", clock.monotonic))
        progress = stack.enter_context(Progress(Console(stderr=True), clock))
        lab = stack.enter_context(_lab(target, protocol, clock, timing, progress))
        run = Run(lab, protocol, cells, args.sequential, progress, clock, stop, timing_s=timing)
        package, verdict = run.execute()
    result = results.document(run, package, verdict)
    (package.path.parent / "result.json").write_bytes(canonical(result))
    if args.json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        console = Console()
        console.print(results.table(result))
        for line in results.beliefs(result):
            console.print(line, highlight=False, soft_wrap=True)
        console.print(f"package: {package.path}", soft_wrap=True, highlight=False)
        console.print(
            f"judge it yourself: python -m oracle judge {package.path}", soft_wrap=True, highlight=False
        )
    return results.exit_code(run, result)


@contextlib.contextmanager
def _lab(
    target: str, protocol: Protocol, clock: SystemClock, timing: dict[str, float], progress: Progress
) -> Iterator[Lab]:
    """Yield the lab to run on: found on AWS, or brought up here and ended again if it is ours."""
    name = stack_name(protocol.name)
    if target == "aws":
        with Timed(timing, "deploy", clock.monotonic):
            lab = find_on_aws(name, protocol.name)
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
        with Timed(timing, "deploy", clock.monotonic):
            assembly, fresh = synthesis.result()
            progress.say(f"stack {name} " + ("synthesised" if fresh else "unchanged, not synthesised again"))
            deploy(cloud, assembly, name)
            described = cloud.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
        yield lab_from_stack("local", described, cloud.client, cloud.account, cloud.versions)


@contextlib.contextmanager
def _interrupts(stop: threading.Event) -> Iterator[None]:
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
