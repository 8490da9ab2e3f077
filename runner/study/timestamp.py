"""RFC 3161 time-stamps: a third party's signed word that some bytes existed at a time.

Beside `x.json` lie `x.tsq` (the request, with its nonce), `x.tsr` (the reply), `x.tsa.pem` (the certificate
that signed) and `x.root.pem` (the one that vouches for it): all that a check needs, without a network:

    openssl ts -verify -data x.json -in x.tsr -CAfile x.root.pem -untrusted x.tsa.pem
"""

import urllib.error
import urllib.request
from datetime import UTC
from pathlib import Path
from urllib.parse import urlparse

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from rfc3161_client import (
    HashAlgorithm,
    TimestampRequestBuilder,
    VerificationError,
    VerifierBuilder,
    decode_timestamp_response,
)
from rfc3161_client._rust import parse_timestamp_request

from runner.disk import write_through
from runner.errors import LabError, UsageError

ANSWER_LIMIT_S = 30
ANSWER_LIMIT_BYTES = 1024 * 1024


def stamp(path: Path, url: str, root_pem: bytes) -> str:
    """Have the file time-stamped, keep all that verifies it beside it, return the token's time.

    Nothing is kept unless the reply verifies against the root. Raises LabError when it does not.
    """
    data = path.read_bytes()
    request = (
        TimestampRequestBuilder()
        .data(data)
        .hash_algorithm(HashAlgorithm.SHA256)
        .nonce(nonce=True)
        .cert_request(cert_request=True)
        .build()
        .as_bytes()
    )
    reply = _post(url, request)
    tsa_pem = _signer(reply, url)
    at = _verified(data, request, reply, tsa_pem, root_pem)
    for suffix, content in (
        (".tsq", request),
        (".tsr", reply),
        (".tsa.pem", tsa_pem),
        (".root.pem", root_pem),
    ):
        write_through(path.with_suffix(suffix), content)
    return at


def verify(path: Path) -> str | None:
    """Return the time the file's token states, or None if it has none. Offline.

    Raises LabError when there is a token and it does not hold.
    """
    if not path.with_suffix(".tsr").exists():
        return None
    try:
        parts = [path.with_suffix(s).read_bytes() for s in (".tsq", ".tsr", ".tsa.pem", ".root.pem")]
    except OSError as error:
        raise _does_not_hold(f"a file beside it is missing: {Path(error.filename).name}") from error
    return _verified(path.read_bytes(), *parts)


def _verified(data: bytes, request: bytes, reply: bytes, tsa_pem: bytes, root_pem: bytes) -> str:
    try:
        answer = decode_timestamp_response(reply)
        verifier = (
            # With the request's nonce, an old reply is no answer; with the certificate, no other
            # signer under the same root will do.
            VerifierBuilder.from_request(parse_timestamp_request(request))
            .tsa_certificate(x509.load_pem_x509_certificate(tsa_pem))
            .add_root_certificate(x509.load_pem_x509_certificate(root_pem))
        )
        verifier.build().verify_message(answer, data)
    except (VerificationError, ValueError) as error:
        raise _does_not_hold(str(error)) from error
    return answer.tst_info.gen_time.astimezone(UTC).isoformat()


def _signer(reply: bytes, url: str) -> bytes:
    """Return the certificate that signed: the one in the reply that is not anybody's issuer."""
    try:
        found = [
            x509.load_der_x509_certificate(der)
            for der in decode_timestamp_response(reply).signed_data.certificates
        ]
    except ValueError as error:
        raise _does_not_hold(f"the reply of {url} cannot be read: {error}") from error
    issuers = {certificate.issuer for certificate in found if certificate.issuer != certificate.subject}
    leaves = [certificate for certificate in found if certificate.subject not in issuers]
    if len(leaves) != 1:
        raise _does_not_hold(f"the reply holds {len(leaves)} certificates that may have signed it")
    return leaves[0].public_bytes(Encoding.PEM)


def _post(url: str, request: bytes) -> bytes:
    if urlparse(url).scheme not in ("http", "https"):
        raise UsageError(
            "that is no address of a time-stamping service",
            expected="an http or https URL",
            found=url,
            next_step="give one with --timestamp",
        )
    asked = urllib.request.Request(url, data=request, headers={"Content-Type": "application/timestamp-query"})
    try:
        with urllib.request.urlopen(asked, timeout=ANSWER_LIMIT_S) as answer:
            return answer.read(ANSWER_LIMIT_BYTES)
    except (urllib.error.URLError, OSError) as error:
        raise LabError(
            "the time-stamping service did not answer",
            expected="a time-stamp reply",
            found=str(error),
            next_step="try again or another service; nothing was registered",
        ) from error


def _does_not_hold(why: str) -> LabError:
    return LabError(
        "the time-stamp does not hold",
        expected="a granted token over these bytes, of this request, signed under this root",
        found=why,
        next_step="do not rely on it; register anew",
    )
