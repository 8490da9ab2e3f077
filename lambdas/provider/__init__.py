"""The provider of refunds: no idempotency key, no deduplication, no call cap, on purpose.

May import: `lambdas.shared`. May be imported by: its tests. It alone writes the ledger.
"""
