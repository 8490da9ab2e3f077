"""`python -m oracle`, and `python -I -S oracle` from a folder that holds nothing but oracle/ and a package."""

import os
import sys

if not __package__:
    # Run as a folder, Python puts oracle/ itself first on the path, where our modules would shadow others' names.
    # The parent goes last instead: nothing that lies beside oracle/ can shadow the standard library.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    sys.path.append(os.path.dirname(here))
    sys.dont_write_bytecode = True

from oracle.cli import main  # noqa: E402

sys.exit(main())
