"""`python -m oracle`, and `python -I -S oracle` where nothing but oracle/ and a package exists."""

import sys
from pathlib import Path

if not __package__:
    # Run as a folder, Python puts oracle/ itself first on the path, where our modules would shadow others.
    # Its parent goes last instead: nothing that lies beside oracle/ can shadow the standard library.
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    sys.path.append(str(here.parent))
    sys.dont_write_bytecode = True

from oracle.cli import main  # noqa: E402

sys.exit(main())
