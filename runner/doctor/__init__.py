"""The doctor: is this target ready, before anything costs money, and does its ground hold.

    checks.py          credentials, region, bootstrap, tools, quotas, stack, ceiling
    ground.py          the behaviours that trials stand on, tried with throw-away resources
    ground_stack.py    the template of those resources
    ground_handlers.py what runs in its functions; its text goes into the template
    queues.py, tables.py, functions.py   the behaviours themselves

Imports nothing of `stacks` or `oracle`; of `lambdas` only the journal, whose append is tried.
"""
