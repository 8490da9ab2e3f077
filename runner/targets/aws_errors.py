"""What AWS says when it refuses, told to a user: one paragraph, the code itself, one next step."""

import contextlib
from collections.abc import Iterator

from botocore import exceptions as botocore
from botocore.exceptions import BotoCoreError, ClientError

from lambdas.shared.journal import AppendExhausted
from runner.errors import LabError, UsageError

ACCESS = {
    "403",
    "AccessDenied",
    "AccessDeniedException",
    "AuthorizationError",
    "UnauthorizedOperation",
}
EXPIRED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
NOT_KNOWN = {
    "AuthFailure",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "OptInRequired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
THROTTLED = {
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
}

# What the user has not set, or set wrongly: known before anything is asked of AWS.
NOT_SET = (botocore.NoCredentialsError, botocore.PartialCredentialsError, botocore.ProfileNotFound)
NO_CREDENTIALS = (
    *NOT_SET,
    botocore.CredentialRetrievalError,
    botocore.SSOError,
    botocore.TokenRetrievalError,
)
NO_REGION = (botocore.InvalidRegionError, botocore.NoRegionError)
NO_ANSWER = (botocore.ConnectionError, botocore.HTTPClientError)


def explained(error: ClientError | BotoCoreError, doing: str) -> LabError:
    """Return the error a user can act on; `doing` completes "AWS ... while ..."."""
    if isinstance(error, ClientError):
        return _refusal(error, doing)
    kind, found = type(error), f"{type(error).__name__}: {error}"
    if issubclass(kind, NO_CREDENTIALS):
        raised = UsageError if issubclass(kind, NOT_SET) else LabError
        return raised(
            f"no usable AWS credentials while {doing}",
            expected="credentials that resolve: environment, profile, SSO session or role",
            found=found,
            next_step="sign in (`aws sso login`, `aws configure`) or set AWS_PROFILE, or use --target local",
        )
    if issubclass(kind, NO_REGION):
        return UsageError(
            f"no usable AWS region while {doing}",
            expected="the region in which the stack is deployed",
            found=found,
            next_step="set AWS_REGION, or region in the profile",
        )
    if issubclass(kind, NO_ANSWER):
        return LabError(
            f"AWS gave no answer while {doing}",
            expected="an answer within the client's timeout",
            found=found,
            next_step="check the network and that AWS_REGION names an existing region, then repeat",
        )
    return LabError(f"AWS could not be asked while {doing}", found=found, next_step="repeat with -v")


def _refusal(error: ClientError, doing: str) -> LabError:
    details = error.response.get("Error", {})
    code, message = str(details.get("Code", "")), str(details.get("Message", ""))
    found = f"{error.operation_name}: {code}: {message}"
    if code in EXPIRED:
        return LabError(
            f"the AWS credentials have expired while {doing}",
            expected="credentials that are valid for as long as the command runs",
            found=found,
            next_step="sign in again (`aws sso login`, or a fresh session token), then repeat",
        )
    if code in NOT_KNOWN:
        return LabError(
            f"AWS does not know these credentials while {doing}",
            expected="credentials of an account that may use this region",
            found=found,
            next_step="check AWS_PROFILE, the keys and AWS_REGION, or use --target local",
        )
    if code in ACCESS:
        return LabError(
            f"AWS refused access while {doing}",
            expected=f"permission for {error.operation_name}",
            found=found,
            next_step="grant it to the identity that `aws sts get-caller-identity` shows, or use another",
        )
    if code in THROTTLED:
        return LabError(
            f"AWS is throttling this account while {doing}",
            expected="an answer within the client's attempts",
            found=found,
            next_step="wait a minute and repeat; end what else calls this service in the account",
        )
    return LabError(f"AWS refused while {doing}", found=found, next_step="repeat with -v to see where")


@contextlib.contextmanager
def telling(doing: str) -> Iterator[None]:
    """Turn what botocore raises inside the block into a LabError that says what was being done."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise explained(error, doing) from error
    except AppendExhausted as error:
        # What no turn got past is what the service said last; a cloud that went away is no fault of ours.
        raise explained(error.__cause__, f"{doing} ({error})") from error
