"""What can be done about the noise of layers, and in which order it is tried."""

from __future__ import annotations

from driver.network.accuracy.blame import Blamed
from driver.network.accuracy.remedies import remedies


def layer(
    name: str, share: float, *, weights: float = 0.0, rounding: float = 0.0, macs: int = 100
) -> Blamed:
    return Blamed(
        name=name,
        share=share,
        weights=weights,
        rounding=rounding,
        source="weights",
        macs=macs,
    )


def ordered(
    *layers: Blamed,
    wide: str = "",
    results: dict[str, int] | None = None,
    floats: str = "abc",
    borders: int | None = None,
) -> list[tuple[str, str]]:
    found = remedies(
        layers,
        wide=wide,
        results=results or {},
        floats=floats,
        macs=1010,
        macs_per_cycle=256,
        borders=borders,
    )
    return [(each.layer, each.kind) for each in found]


def test_cheap_layers_come_first() -> None:
    dear, cheap = layer("a", 0.5, macs=1000), layer("b", 0.4, macs=10)
    assert ordered(dear, cheap, layer("c", 0.01, macs=0)) == [
        ("b", "float"),
        ("c", "float"),
        ("a", "float"),
    ]


def test_wide_weights_come_before_floats_where_weights_are_to_blame() -> None:
    found = ordered(layer("a", 0.5, weights=0.4), layer("b", 0.5, weights=1e-4), wide="ab")
    assert found == [("a", "wide"), ("a", "float"), ("b", "float"), ("b", "wide")]


def test_what_a_layer_cannot_have_is_no_remedy() -> None:
    assert ordered(layer("a", 0.5, weights=0.4), floats="", wide="") == []
    assert ordered(layer("a", 0.5), wide="a", floats="") == []


def test_more_levels_for_all_layers_come_where_they_are_worth_it() -> None:
    noisy = layer("a", 1.0, rounding=1.0, macs=1000)
    assert ordered(noisy, borders=500)[0] == ("", "asymmetric")
    assert ordered(noisy, borders=50_000)[-1] == ("", "asymmetric")
    assert ordered(noisy) == [("a", "float")]


def test_results_of_16_bits_cost_what_their_readers_do_once_more() -> None:
    noisy = layer("a", 0.5, weights=0.25, rounding=0.25)
    few, many = ordered(noisy, wide="a", results={"a": 0}), ordered(noisy, results={"a": 10**6})
    assert sorted(few[:2]) == [("a", "results"), ("a", "wide")]
    assert many == [("a", "float"), ("a", "results")]
