"""The provider: its ledger, the barrier it waits on, and the function that commits.

The ledger is writable by this role alone. The barrier has a table of its own so that IAM itself
keeps the callers blind to the scenario.
"""

from constructs import Construct

from runner.protocol import Protocol
from stacks.journal_release import Journal
from stacks.shapes import Runtime, allow, lab_function, lab_table


class LedgerProvider(Construct):
    """The ledger, the barrier and the one function that writes effects."""

    def __init__(
        self, scope: Construct, id: str, *, protocol: Protocol, runtime: Runtime, journal: Journal
    ) -> None:
        super().__init__(scope, id)
        self.ledger = lab_table(self, "Ledger", sort_key="transaction_id")
        self.barrier = lab_table(self, "Barrier")
        built = lab_function(
            self,
            name="provider",
            handler="lambdas.provider.handler.handler",
            timeout_s=protocol.provider.function_timeout_s,
            runtime=runtime,
            environment={
                "SUC_JOURNAL_TABLE": journal.table.table_name,
                "SUC_LEDGER_TABLE": self.ledger.table_name,
                "SUC_BARRIER_TABLE": self.barrier.table_name,
                "SUC_HOLD_BUDGET_S": str(protocol.provider.hold_budget_s),
                "SUC_BARRIER_POLL_MS": str(protocol.provider.barrier_poll_ms),
            },
            access=[
                # Put alone: a committed effect is never read back, changed or deleted.
                allow("dynamodb:PutItem", on=self.ledger.table_arn),
                allow("dynamodb:GetItem", "dynamodb:UpdateItem", on=self.barrier.table_arn),
                journal.append_access(),
            ],
        )
        self.function, self.log_group = built.function, built.log_group
