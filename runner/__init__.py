"""The runner: drives trials on a target, freezes what happened, and asks the oracle for a verdict.

May import the standard library, boto3/botocore, Rich, and `lambdas.shared` (the one journal
writer); `runner/report/` alone also Jinja, Altair and vl-convert, `runner/timestamp.py` alone
rfc3161-client and cryptography. Never imports `stacks`, `oracle` or aws_cdk: the oracle is called
as a command, as any reader would call it.
"""
