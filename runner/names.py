"""Names shared by the stack, the runner and the tests. Free of aws_cdk on purpose."""

PROJECT = "serverless-under-constraints"
DURABLE_ALIAS = "live"

CONVENTIONAL = "conventional"
DURABLE = "durable"
VARIANTS = (CONVENTIONAL, DURABLE)

CONTROL = "CONTROL"
COMMIT_THEN_TIMEOUT = "COMMIT_THEN_TIMEOUT"
SCENARIOS = (CONTROL, COMMIT_THEN_TIMEOUT)

TARGETS = ("local", "aws")
# What audits and looks at the ground leave beside the runs; no run is called so.
ADDENDA = "addenda"
GRADES = {"local": "emulated", "aws": "aws"}


def stack_name(protocol_name: str) -> str:
    """Return the CloudFormation stack of a protocol: `study-1` -> `SucStudy1`.

    The name has no hyphen, so `<stack>-` is a prefix of this stack's resources alone
    (`SucStudy1-` does not match `SucStudy1Rehearsal-`; CASES D29).
    """
    return "Suc" + "".join(word.capitalize() for word in protocol_name.split("-"))


# The stage of a run that belongs to no stage of a study.
RUN = "run"


class Output:
    """Keys of the stack's outputs: all that the runner needs to find its way."""

    LEDGER_TABLE = "LedgerTable"
    JOURNAL_TABLE = "JournalTable"
    BARRIER_TABLE = "BarrierTable"
    PROVIDER_FUNCTION = "ProviderFunction"
    RELEASE_FUNCTION = "ReleaseFunction"
    RELEASE_FAILURE_QUEUE_URL = "ReleaseFailureQueueUrl"
    CONVENTIONAL_FUNCTION = "ConventionalFunction"
    CONVENTIONAL_QUEUE_URL = "ConventionalQueueUrl"
    CONVENTIONAL_DLQ_URL = "ConventionalDlqUrl"
    DURABLE_FUNCTION = "DurableFunction"
    DURABLE_ALIAS = "DurableAlias"
    DURABLE_QUEUE_URL = "DurableQueueUrl"
    DURABLE_DLQ_URL = "DurableDlqUrl"
    PROVIDER_LOG_GROUP = "ProviderLogGroup"
    RELEASE_LOG_GROUP = "ReleaseLogGroup"
    CONVENTIONAL_LOG_GROUP = "ConventionalLogGroup"
    DURABLE_LOG_GROUP = "DurableLogGroup"
    PROTOCOL_NAME = "ProtocolName"
    PROTOCOL_SHA256 = "ProtocolSha256"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Return every output key."""
        return tuple(v for k, v in vars(cls).items() if k.isupper())
