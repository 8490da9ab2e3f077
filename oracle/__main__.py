"""`python -m oracle`, and `python -I -S oracle` where nothing but oracle/ and a package exists."""

import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - a sceptic's python3 may be any
    # An import that fails would end with 1, which means `fail`.
    print("oracle: expected Python 3.11 or newer, found " + sys.version.split()[0], file=sys.stderr)
    sys.exit(70)

if not __package__:
    # Run as a folder, Python puts oracle/ itself first on the path, where our modules would shadow others.
    # Its parent goes last instead: nothing that lies beside oracle/ can shadow the standard library.
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    sys.path.append(str(here.parent))
    sys.dont_write_bytecode = True

from oracle.cli import main  # noqa: E402

sys.exit(main())
