"""A study from its probe to its close-out on the local cloud, each stage refused before its time."""

import json

import pytest

from tests.e2e.lab import REHEARSAL, package_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ON = ("--protocol", REHEARSAL, "--target", "local")


@pytest.fixture(scope="module")
def cloud(lab):
    """One cloud for all stages, and a folder of registrations of the test's own."""
    lab.call("runner", "local", "up")
    yield {"SUC_REGISTRATIONS_DIR": str(lab.home / "registrations")}
    lab.call("runner", "local", "down")


def test_a_study_goes_from_probe_to_close_out(lab, cloud):
    def stage(name, expected_exit=0):
        done = lab.call("runner", "stage", name, *ON, "--json", **cloud)
        assert done.returncode == expected_exit, done.stderr
        return json.loads(done.stdout) if done.stdout else done.stderr

    assert "runner stage probe" in stage("validate", 64)
    probe = stage("probe")
    assert (probe["stage"], probe["trials"], probe["probe"]) == ("probe", [], "valid")
    assert "runner stage validate" in stage("canonical", 64)
    validate = stage("validate")
    assert record(validate)["previous"] == probe["package"]["id"]
    assert len(validate["trials"]) == 4

    assert "not registered" in stage("canonical", 64)
    registration = lab.call("runner", "preregister", "--protocol", REHEARSAL, **cloud)
    assert registration.returncode == 0, registration.stderr
    canonical = stage("canonical")
    assert [trial["verdict"] for trial in canonical["trials"]] == ["pass", "pass", "fail", "fail"]
    said = record(canonical)
    assert said["previous"] == validate["package"]["id"]
    assert (said["publishable"], said["sequential"]) == (False, True)
    assert registration.stdout.strip().endswith(said["registration"]["file"])
    cost = json.loads((package_of(canonical) / "cost.json").read_text())
    assert (cost["state"], cost["charged_micro_usd"]) == ("unverified", 0)
    assert 0 < cost["estimate_micro_usd"] < cost["ceiling_usd_cents"] * 10_000
    assert verify(lab, registration.stdout.strip(), cloud)["changed"] == []

    runs = json.loads(lab.call("runner", "runs", "--json", **cloud).stdout)
    staged = [(run["stage"], run["excluded"]) for run in runs if run["stage"] != "run"]
    assert staged == [("probe", None), ("validate", None), ("canonical", None)]
    written = [lab.call("runner", "closeout", "--protocol", REHEARSAL, **cloud) for _ in range(2)]
    assert written[0].returncode == 0 and written[0].stdout == written[1].stdout
    assert canonical["package"]["id"] in written[0].stdout


def record(result):
    return json.loads((package_of(result) / "run.json").read_text())


def verify(lab, path, cloud):
    return json.loads(lab.call("runner", "preregister", "verify", path, "--json", **cloud).stdout)
