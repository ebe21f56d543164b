"""What saved time is worth."""

from __future__ import annotations

import pytest

from checkpoint_action.report.money import parse_rate


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("0.48", "0.48"),
        ("0.48/h", "0.48"),
        ("0.008/min", "0.48"),
        ("$0.48/h", "$0.48"),
        ("€ 0.5/hour", "€0.50"),
        ("0.45EUR/h", "0.45 EUR"),
        ("0.45 EUR", "0.45 EUR"),
        ("EUR 0.45/h", "EUR 0.45"),
        ("11.52/day", "0.48"),
        ("0.45€", "0.45€"),
        ("0", "0.00"),
    ],
)
def test_an_hour_costs(text: str, cost: str) -> None:
    assert parse_rate(text).cost(3600) == cost


@pytest.mark.parametrize("text", ["", "x", "1/week", "-1", "1,5", "$1 EUR", "1e9", "nan", "1/", "1//h", "9" * 20])
def test_what_is_no_price(text: str) -> None:
    with pytest.raises(ValueError, match="is no price of machine time"):
        parse_rate(text)


def test_small_amounts_keep_two_digits() -> None:
    rate = parse_rate("$0.48/h")
    assert [rate.cost(seconds) for seconds in (0, 1, 10, 100, 1000)] == [
        "$0.00",
        "$0.00013",
        "$0.0013",
        "$0.013",
        "$0.13",
    ]
