"""The release controller: turns a recorded caller timeout into the release of the provider's held answer.

May import: `lambdas.shared`. May be imported by: its tests.
It never calls the provider and never sees the ledger.
"""
