"""`ensure()`: the local cloud for a run, whoever started it."""

import sys
import threading

from runner.local import launch
from runner.local.clients import make_client
from runner.local.ministack import ACCOUNT, REGION


class Cloud:
    """A running local cloud; a context manager that ends it if we started it."""

    region = REGION
    account = ACCOUNT

    def __init__(self, running: launch.Running, launched: launch.Launched | None = None):
        self.endpoint = running.endpoint
        self.iam = running.iam
        self.versions = running.versions
        self.logs = running.logs
        self.owned = launched is not None
        self._launched = launched
        self._clients: dict = {}
        self._lock = threading.Lock()

    def client(self, service: str, *, read_timeout_s: int = 60):
        """Return a boto3 client of root, shared; see `clients.make_client`."""
        with self._lock:
            key = (service, read_timeout_s)
            if key not in self._clients:
                self._clients[key] = make_client(self.endpoint, service, read_timeout_s=read_timeout_s)
            return self._clients[key]

    def assume_role(self, role_arn: str, service: str):
        """Return a client with a role's credentials, to show what its grants allow and refuse."""
        got = self.client("sts").assume_role(RoleArn=role_arn, RoleSessionName="suc-local")["Credentials"]
        credentials = {
            "aws_access_key_id": got["AccessKeyId"],
            "aws_secret_access_key": got["SecretAccessKey"],
            "aws_session_token": got["SessionToken"],
        }
        return make_client(self.endpoint, service, credentials=credentials)

    def close(self) -> None:
        """End the cloud if it is ours; one of `local up` stays."""
        if self._launched:
            self._launched.end()
            self._launched = None

    def __enter__(self) -> "Cloud":
        return self

    def __exit__(self, *_exc) -> None:
        self.close()


def ensure(*, iam: bool = True, note=lambda text: print(text, file=sys.stderr)) -> Cloud:
    """Return the cloud of `local up`, else start one that ends with this process.

    `iam` matters only for a new one; a running one says in `Cloud.iam` what it enforces.
    """
    running = launch.find()
    if running:
        return Cloud(running)
    launched = launch.start(iam=iam, note=note)
    return Cloud(launched.running, launched)
