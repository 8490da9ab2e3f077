"""The command line refuses bad input with the valid names and exit code 64, before anything starts."""

import pytest

from runner.cli import main


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (["run", "--scenario", "CHAOS"], ["CONTROL", "COMMIT_THEN_TIMEOUT"]),
        (["run", "--scenario", "CONTROL", "--variant", "magic"], ["conventional", "durable"]),
        (["run", "--scenario", "CONTROL", "--protocol", "study-9"], ["study-1", "study-1-rehearsal"]),
        (["run", "--scenario", "CONTROL", "--target", "moon"], ["local", "aws"]),
        (["fly"], ["run", "local"]),
        ([], ["COMMAND"]),
        (["run", "--scen", "CONTROL"], ["--scen"]),
    ],
)
def test_bad_input_is_refused_with_the_valid_names(argv, names, capsys, monkeypatch):
    monkeypatch.setattr("runner.commands.run.choose", lambda _asked: pytest.fail("something was started"))
    with pytest.raises(SystemExit) as refusal:
        main(argv)
    assert refusal.value.code == 64
    told = capsys.readouterr()
    assert told.out == ""
    for name in names:
        assert name in told.err
