"""A run: probe and trials under one id, kept on disk whatever happens, frozen into one package.

run.py             the order of a run's life
preflight.py       what must hold before it may start
lease.py           one runner at a time on a stack
state.py           what it was about to do, on disk before it did it
occupants.py       which runs a local cloud would take with it
resume.py          a run whose process died, taken up
freeze.py          the package
addendum.py        what is learnt after a package was published
oracle_command.py  the verdict, asked of the oracle as a command
result.py, floor.py  what is printed, and the least time that the protocol needs
history.py         every run there ever was
"""
