"""`python -m runner`."""

import sys

from runner.errors import EXIT_HARNESS


def _main() -> int:
    try:
        # Here, because the imports take a second in which Ctrl-C must end as it does later.
        from runner.cli import main

        return main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_HARNESS


if __name__ == "__main__":
    sys.exit(_main())
