"""`runner local up|down|status`: the local cloud by hand."""

import argparse
import json
import sys
import urllib.error
import urllib.request
from dataclasses import asdict

from runner.errors import EXIT_OK, UsageError
from runner.local import launch
from runner.places import runs_dir


def add_parser(subparsers) -> argparse.ArgumentParser:
    """Add `local` with its three commands."""
    parser = subparsers.add_parser("local", help="manage the embedded local cloud")
    commands = parser.add_subparsers(dest="local_command", required=True, metavar="up|down|status")
    up = commands.add_parser("up", help="start it and print its endpoint; a second up is fine")
    up.add_argument("--iam", choices=("on", "off"), default="on", help="enforce IAM (default: on)")
    down = commands.add_parser("down", help="end it and leave nothing behind")
    down.add_argument("--force", action="store_true", help="end it under a run that goes on")
    status = commands.add_parser("status", help="say whether it is up and healthy")
    for command in (up, down, status):
        command.add_argument("--json", action="store_true", help="print JSON on stdout")
    return parser


def main(args: argparse.Namespace) -> int:
    """Run one of the three commands."""
    return {"up": _up, "down": _down, "status": _status}[args.local_command](args)


def _up(args: argparse.Namespace) -> int:
    iam = args.iam == "on"
    with launch.exclusive():
        running = launch.find()
        if running and running.iam != iam:
            raise UsageError(
                "the local cloud is already up with another --iam",
                expected=f"--iam {args.iam}",
                found=f"--iam {'on' if running.iam else 'off'} at {running.endpoint}",
                next_step="python -m runner local down",
            )
        if running:
            _note("already running")
        else:
            launched = launch.start(iam=iam, note=_note)
            running = launched.running
            launch.remember(running)
            launched.detach()
    _print(args, {"running": True, **asdict(running)}, running.endpoint)
    return EXIT_OK


def _down(args: argparse.Namespace) -> int:
    with launch.exclusive():
        if running := launch.find():
            _demand_nobody(running, args.force)
        ended = launch.stop()
    _note("ended" if ended else "not running")
    if args.json:
        print(json.dumps({"running": False, "ended": bool(ended)}))
    return EXIT_OK


def _demand_nobody(running: launch.Running, force: bool) -> None:
    """Refuse to end a cloud under a run, whose evidence is in it alone. Raises UsageError naming the run."""
    from runner.clock import SystemClock
    from runner.local.cloud import Cloud
    from runner.runs.occupants import occupants

    found = occupants(Cloud(running), runs_dir(), SystemClock().now_ms())
    for run_id in found.died:
        _note(f"run {run_id} died on it; without it, resume can only close that run without a package")
    told = "; ".join(f"run {run_id}: {why}" for run_id, why in found.going_on.items())
    if told and not force:
        raise UsageError(
            "a run goes on in the local cloud, and its evidence would end with it",
            expected="no run in it",
            found=told,
            next_step="wait for it, or end it with Ctrl-C in its terminal; --force ends the cloud anyway",
        )
    if told:
        _note(f"ended under a run ({told})")


def _status(args: argparse.Namespace) -> int:
    running = launch.find()
    if running is None:
        _print(args, {"running": False}, "not running")
        return EXIT_OK
    health = _health(running.endpoint)
    iam = "on" if running.iam else "off"
    text = f"{running.endpoint}  IAM {iam}  {'healthy' if health else 'NOT HEALTHY'}"
    _print(args, {"running": True, "healthy": bool(health), **asdict(running), "health": health}, text)
    return EXIT_OK


def _health(endpoint: str) -> dict | None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{endpoint}/_suc/health", timeout=5) as answer:
            return json.load(answer)
    except (urllib.error.URLError, OSError):
        return None


def _print(args: argparse.Namespace, data: dict, text: str) -> None:
    print(json.dumps(data) if args.json else text)


def _note(text: str) -> None:
    print(f"local cloud: {text}", file=sys.stderr)
