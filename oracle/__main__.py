"""`python -m oracle`, and `python -I -S oracle` where nothing but oracle/ and a package exists."""

import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - a sceptic's python3 may be any
    # An error that nobody catches would end with 1, which means `fail`.
    print("oracle: expected Python 3.11 or newer, found " + sys.version.split()[0], file=sys.stderr)
    sys.exit(70)

if not __package__:
    # Run as a folder, Python puts oracle/ itself first on the path, where our modules would shadow others.
    # Its parent goes last instead: nothing that lies beside oracle/ can shadow the standard library.
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    sys.path.append(str(here.parent))
    sys.dont_write_bytecode = True

try:
    from oracle.cli import main
except Exception as error:  # noqa: BLE001 - nor may a copy of the oracle that is not whole
    print(f"oracle: this copy is not whole ({type(error).__name__}: {error}): copy it again", file=sys.stderr)
    sys.exit(70)

sys.exit(main())
