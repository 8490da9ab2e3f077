"""`python -m runner report`: one package, several side by side, or a page of all runs."""

import argparse
import sys
import webbrowser
from pathlib import Path

from runner.errors import EXIT_OK, UsageError
from runner.outputs import demand_file, write_file

# How a file of ours begins, so that nothing else is overwritten.
PAGE, PICTURE = b"<!doctype html>", b"<svg"


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Add `report` to the runner's commands."""
    parser = commands.add_parser("report", help="show packages as one HTML page that needs no network")
    parser.add_argument(
        "packages", nargs="*", metavar="PACKAGE", type=Path, help="a package folder, .tar or .tar.gz"
    )
    parser.add_argument(
        "--compare", action="store_true", help="put the variants of one or more packages side by side"
    )
    parser.add_argument("--index", action="store_true", help="make a page of all runs under runs/")
    parser.add_argument("--picture", action="store_true", help="draw the ledgers as one SVG, for a README")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="where to write it (default: beside the package)"
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def main(args: argparse.Namespace) -> int:
    """Write the asked page and print its path."""
    _refuse_bad_flags(args)
    # Charts and templates are worth importing only once a page is really made.
    from runner.places import runs_dir
    from runner.report import pages

    out = args.out or _default(args, runs_dir())
    demand_file(out, *(("a picture", PICTURE) if args.picture else ("a page", PAGE)))
    if args.index:
        text = pages.index_page(runs_dir(), out.resolve().parent)
    elif args.picture:
        text = pages.picture_file(args.packages[0])
    elif args.compare:
        text, reasons = pages.comparison_page(args.packages)
        if reasons:
            _note("not eligible for a comparison; the page says why")
    else:
        text, intact = pages.report_page(args.packages[0])
        if not intact:
            _note("the package's integrity is broken; the page says how, and shows no figure")
    write_file(out, text.encode("utf-8"))
    print(out)
    if args.open and not webbrowser.open(out.resolve().as_uri()):
        _note("no browser could be opened; open the file yourself")
    return EXIT_OK


def _default(args: argparse.Namespace, runs: Path) -> Path:
    if args.index:
        if not runs.is_dir():
            raise UsageError(f"there are no runs in {runs}", next_step="python -m runner run")
        return runs / "index.html"
    if args.compare:
        return Path("comparison.html")
    return default_out(args.packages[0], ".svg" if args.picture else ".html")


def default_out(package: Path, ending: str = ".html") -> Path:
    """Beside the package, never inside it: a file more would break its integrity."""
    package = package.resolve()
    return package.with_name(package.name + ending)


def _refuse_bad_flags(args: argparse.Namespace) -> None:
    if args.index + args.compare + args.picture > 1:
        raise UsageError("one page at a time", expected="only one of --compare, --index and --picture")
    if args.index and args.packages:
        raise UsageError("--index shows every run", expected="no PACKAGE beside it")
    if not args.index and not args.packages:
        raise UsageError("nothing to report on", expected="a PACKAGE, or --index for all runs")
    if len(args.packages) > 1 and not args.compare:
        raise UsageError(
            "one report shows one package",
            expected="one PACKAGE",
            found=f"{len(args.packages)} of them",
            next_step="--compare puts them side by side",
        )
    for package in args.packages:
        if not package.exists():
            raise UsageError(f"{package} does not exist", expected="a package folder, .tar or .tar.gz")
        if args.out and package.is_dir() and args.out.resolve().is_relative_to(package.resolve()):
            raise UsageError(
                "a page inside the package would break its integrity",
                expected="--out outside of it",
                found=str(args.out),
            )


def _note(text: str) -> None:
    print(text, file=sys.stderr)
