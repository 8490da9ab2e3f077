"""A change of the template shows up in review as a change of the snapshot."""

from tests.stacks.snapshot import REGENERATE, SNAPSHOT, readable
from tests.stacks.synthesis import Assembly


def test_the_template_is_the_reviewed_one(study: Assembly) -> None:
    assert readable(study) == SNAPSHOT.read_text(), f"the template changed; to review the diff: {REGENERATE}"
