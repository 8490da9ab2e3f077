"""A real time-stamping responder on loopback: certificates of our own, `openssl ts -reply` behind HTTP."""

import http.server
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Without a `certs=` line: with it OpenSSL 3.0 writes the certificates in an order that is not DER.
CONFIG = """\
[tsa]
default_tsa=t
[t]
serial={folder}/serial
signer_cert={folder}/tsa.pem
signer_key={folder}/key.pem
signer_digest=sha256
default_policy=1.2.3.4.1
digests=sha256
accuracy=secs:1
ordering=yes
tsa_name=yes
ess_cert_id_chain=no
ess_cert_id_alg=sha256
"""


def _usage(ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not ca,
        key_cert_sign=ca,
        crl_sign=ca,
        content_commitment=not ca,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def certificate(name: str, key, issuer: x509.Certificate | None, issuer_key, ca: bool) -> x509.Certificate:
    now = datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca, None), True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False)
        .add_extension(_usage(ca), True)
    )
    if not ca:  # must be critical and alone
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.TIME_STAMPING]), True)
    return builder.sign(issuer_key, hashes.SHA256())


class Tsa:
    """A context manager; `url` answers requests, `root` is the PEM file that vouches for it."""

    def __init__(self, folder: Path):
        self._folder, self._serial_lock = folder, threading.Lock()
        root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
        root = certificate("Test root", root_key, None, root_key, ca=True)
        leaf = certificate("Test TSA", key, root, root_key, ca=False)
        self.root = folder / "root.pem"
        self.root.write_bytes(root.public_bytes(Encoding.PEM))
        (folder / "tsa.pem").write_bytes(leaf.public_bytes(Encoding.PEM))
        (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        (folder / "serial").write_text("01\n")
        (folder / "config").write_text(CONFIG.format(folder=folder))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}/"

    def reply(self, request: bytes) -> bytes:
        with self._serial_lock:
            query = self._folder / "query"
            query.write_bytes(request)
            command = ["openssl", "ts", "-reply", "-config", str(self._folder / "config")]
            return subprocess.run(
                [*command, "-queryfile", str(query)], capture_output=True, check=True
            ).stdout

    def _handler(tsa):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = tsa.reply(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-type", "application/timestamp-reply")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments):
                """Say nothing."""

        return Handler

    def __enter__(self) -> "Tsa":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_exception) -> None:
        self._server.shutdown()
        self._server.server_close()
