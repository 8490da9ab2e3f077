"""Packages made by somebody who wants a pass that is none, or a fail that nobody sees.

Each of these got through once, or shows that a neighbouring way in is shut.
"""

from __future__ import annotations

import pytest

from oracle.strict_json import Malformed, load_value


# -- JSON ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("depth, deep", [(64, False), (65, True), (600, True)])
def test_brackets_in_strings_hide_no_depth(depth, deep):
    """Each level opens beside a string that closes it, so that brackets alone look balanced at once."""
    text = b'["]",' * depth + b"1" + b',"["]' * depth
    if not deep:
        assert load_value(text)[0] == "]"
        return
    with pytest.raises(Malformed) as bad:
        load_value(text)
    assert bad.value.code == "J13"
