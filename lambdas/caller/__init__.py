"""The two callers. They differ only in who owns the retry: SQS (conventional) or the durable step (durable).

May import: `lambdas.shared`, the durable SDK (durable alone). May be imported by: its tests.
Callers are blind: they know neither barrier nor ledger.
"""
