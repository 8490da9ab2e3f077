"""The ground of the local cloud, as typed; and nothing stays when a look at it is cut short."""

import json
from pathlib import Path

import pytest

from runner import cli, protocol
from runner.clock import SystemClock
from runner.doctor import ground
from runner.targets import accounts
from tests.account.conftest import REHEARSAL

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def left(cloud, stack: str) -> list[str]:
    """Names of stacks, log groups and tables that a look at the ground would leave."""
    stacks = [s["StackName"] for s in cloud.client("cloudformation").describe_stacks()["Stacks"]]
    groups = [g["logGroupName"] for g in cloud.client("logs").describe_log_groups()["logGroups"]]
    tables = cloud.client("dynamodb").list_tables()["TableNames"]
    return [name for name in [*stacks, *groups, *tables] if f"{stack}-ground" in name]


def test_the_local_clouds_ground_holds_and_nothing_stays(cloud, stack, capsys):
    code = cli.main(["doctor", "--ground", "--protocol", REHEARSAL, "--target", "local", "--json"])
    told = capsys.readouterr()
    found = json.loads(told.out)
    behaviours = {b["name"]: (b["result"], b["observed"]) for b in found["ground"]["behaviours"]}
    assert [(n, b) for n, b in behaviours.items() if b[0] != "HOLDS"] == []
    assert len(behaviours) == 18
    assert {c["health"] for c in found["checks"]} == {"OK"}
    assert code == 0
    assert left(cloud, stack) == []
    assert found["ground"]["grade"] == "emulated"
    where = ("local", cloud.account, cloud.region)
    assert ground.load_latest(*where, cloud.versions) == found["ground"]
    folder = Path(told.err.split("addendum: ")[1].splitlines()[0])
    assert json.loads((folder / "ground.json").read_text()) == found["ground"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_nothing_stays_when_it_is_cut_short(cloud, stack, monkeypatch, error):
    def cut(_ground):
        assert left(cloud, stack)
        raise error

    monkeypatch.setattr(ground, "try_all", cut)
    account = accounts.of_cloud(cloud, protocol.load(REHEARSAL))
    with pytest.raises(error):
        ground.survey(account, SystemClock(), cloud.versions, print)
    assert left(cloud, stack) == []
