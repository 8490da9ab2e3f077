"""Cleanup and audit: taking a stack away; what of it is still in the account, asked twice.

    cleanup.py   mappings off, executions stopped, invocations ended, the stack deleted
    ask.py       recorded calls, and errors told apart
    finding.py   PRESENT, GONE, UNKNOWN, REMNANT
    kinds.py     per resource type: how it is listed by name and how one is described
    tags.py      the tagging API: a hint, each hit confirmed by the service itself
    passes.py    one pass, two passes with a delay, and when they are clean

Imports nothing of `stacks` or `oracle`.
"""
