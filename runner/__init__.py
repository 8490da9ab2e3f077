"""The runner: drives trials on a target, freezes what happened, and asks the oracle for a verdict.

    commands/       one module per command; cli.py finds them
    trials/, runs/  what drives a trial, and the run that keeps and freezes it
    study/          stages, pre-registration, close-out
    targets/        AWS or the local cloud, and the stack there; local/ is that cloud
    audit/, doctor/ after the last run, and before the first
    cost/, redact/, report/, live/   what their names say

A package is opened by packages.py, a file that a command is asked for is written by outputs.py.

May import the standard library, boto3/botocore, Rich, and `lambdas.shared` (the one journal
writer); `runner/report/` alone also Jinja, Altair and vl-convert, `runner/study/timestamp.py` alone
rfc3161-client and cryptography. Never imports `stacks`, `oracle` or aws_cdk: the oracle is called
as a command, as any reader would call it.
"""
