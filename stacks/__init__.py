"""The CDK stack of a study: what DESIGN section 5 deploys, and nothing else.

May import aws_cdk, `runner.protocol`, `runner.names` and itself. Nothing imports this package
but `app.py` and the tests: the runner meets the stack only through its outputs.
"""
