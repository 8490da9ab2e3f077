"""What the handlers share: settings, clients, logs, the journal writer, the provider client, the barrier.

May import: the standard library, botocore, Powertools. May be imported by: every other package of `lambdas`.
"""
