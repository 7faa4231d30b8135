"""Several numbers in one option."""

import pytest

from broadreach.commands.lists import numbers, whole_numbers
from broadreach.types import UserError


def test_numbers_are_read():
    assert numbers("0.3, 1", "--taus") == (0.3, 1.0)
    assert whole_numbers("0,2", "--seeds", 0) == (0, 2)


@pytest.mark.parametrize("text", ["", "1.5", "0", "1,,2", "one"])
def test_anything_but_whole_numbers_is_refused_with_the_option(text):
    with pytest.raises(UserError, match=r"--k .*: give whole numbers of 1 or more"):
        whole_numbers(text, "--k")


@pytest.mark.parametrize("text", ["", "0.1,,0.2", "a"])
def test_anything_but_numbers_is_refused_with_the_option(text):
    with pytest.raises(UserError, match=r"--taus .*: give numbers"):
        numbers(text, "--taus")
