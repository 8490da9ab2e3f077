"""`python -m runner`."""

import sys


def _main() -> int:
    try:
        # Here, because the imports take a second in which Ctrl-C must end as it does later.
        from runner.cli import main

        return main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 70


if __name__ == "__main__":
    sys.exit(_main())
