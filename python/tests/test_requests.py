"""Arguments become the tickets and bodies of the wire, and nothing else."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from longbow import InvalidArgument
from longbow.requests import delete_body, filter_list, plain, search_ticket
from longbow.session import encode

CONDITION = {"field": "year", "operator": ">", "value": 1990}
NESTED = {"logic": "OR", "filters": [CONDITION]}
FILTERS = [
    (None, None),
    (("year", ">", 1990), [CONDITION]),
    ([("year", ">", 1990)], [CONDITION]),
    ((("year", ">", 1990), ("year", ">", 1990)), [CONDITION, CONDITION]),
    (CONDITION, [CONDITION]),
    ([NESTED, ("year", ">", 1990)], [NESTED, CONDITION]),
    (("note", "is_null"), [{"field": "note", "operator": "is_null"}]),
    (("n", "=", np.int64(5)), [{"field": "n", "operator": "=", "value": 5}]),
    (("n", "in", np.array([1, 2])), [{"field": "n", "operator": "in", "value": [1, 2]}]),
    (("n", "in", {3}), [{"field": "n", "operator": "in", "value": [3]}]),
    ([], []),
    (
        {"logic": "OR", "filters": [{"field": "n", "op": "in", "value": np.array([1, 2])}]},
        [{"logic": "OR", "filters": [{"field": "n", "op": "in", "value": [1, 2]}]}],
    ),
    (NESTED | {"filters": [("year", ">", np.float32(1990))]}, [NESTED]),
    (("n", "=", np.longdouble(0.5)), [{"field": "n", "operator": "=", "value": 0.5}]),
    (("n", "=", np.str_("a")), [{"field": "n", "operator": "=", "value": "a"}]),
    (
        ("at", "<", dt.datetime(2024, 2, 29, 1)),
        [{"field": "at", "operator": "<", "value": "2024-02-29T01:00:00"}],
    ),
    (
        ("at", "in", np.array(["2024-02-29"], "M8[D]")),
        [{"field": "at", "operator": "in", "value": ["2024-02-29"]}],
    ),
]


@pytest.mark.parametrize("given, sent", FILTERS)
def test_filters(given, sent) -> None:
    assert filter_list(given) == sent
    encode(sent)


@pytest.mark.parametrize("given", [[("year",)], ["year > 1990"], [(1, "=", 2)], [7], 7])
def test_bad_filters_are_shown(given) -> None:
    with pytest.raises(
        InvalidArgument, match="is not \\(column, operator, value\\)|is no filter"
    ) as caught:
        filter_list(given)
    assert caught.value.code == "invalid_filter"


def test_a_search_says_only_what_was_said() -> None:
    ticket = search_ticket("d", np.array([1, 2], "f4"), {"k": 3, "exact": False, "ef": None})
    assert ticket == {"search": {"dataset": "d", "vector": "AACAPwAAAEA=", "k": 3, "exact": False}}


def test_a_search_for_several_and_one_for_text() -> None:
    several = search_ticket("d", [[1, 2], [3, 4]], {})
    assert several == {"search": {"dataset": "d", "vectors": ["AACAPwAAAEA=", "AABAQAAAgEA="]}}
    text = search_ticket("d", None, {"text_query": "words"})
    assert text == {"search": {"dataset": "d", "text_query": "words"}}
    with pytest.raises(InvalidArgument, match="needs a vector, a text_query"):
        search_ticket("d", None, {})


def test_options_are_plain_whatever_holds_them() -> None:
    options = {
        "k": np.int64(3),
        "exact": np.bool_(True),
        "max_distance": np.float32(0.5),
        "ef": pa.scalar(40),
        "beside": [{"column": "v", "vector": np.ones(2), "weight": np.float64(2)}],
    }
    options["beside"] = plain(options["beside"])
    search = search_ticket("d", None, {"text_query": "w", **options})["search"]
    assert search == {
        "dataset": "d",
        "text_query": "w",
        "k": 3,
        "exact": True,
        "max_distance": 0.5,
        "ef": 40,
        "beside": [{"column": "v", "vector": [1.0, 1.0], "weight": 2.0}],
    }
    assert {type(search[name]) for name in ("k", "exact", "max_distance")} == {int, bool, float}


IDS = [
    (7, "id", 7),
    ("seven", "id", "seven"),
    (np.int64(7), "id", 7),
    (pa.scalar(7), "id", 7),
    ([7, "x"], "ids", [7, "x"]),
    (range(3), "ids", [0, 1, 2]),
    (np.array([1, 2]), "ids", [1, 2]),
    (pa.array(["a", "b"]), "ids", ["a", "b"]),
    (pa.chunked_array([[1], [2]]), "ids", [1, 2]),
    ((i for i in (1, 2)), "ids", [1, 2]),
    ([], "ids", []),
]


@pytest.mark.parametrize("given, key, sent", IDS)
def test_delete_by_id_or_ids(given, key, sent) -> None:
    body = delete_body("d", given, None, None)
    assert body == {"dataset": "d", key: sent}
    encode(body)


def test_delete_by_a_predicate_and_never_by_nothing() -> None:
    filters = ("year", ">", 1990)
    assert delete_body("d", None, filters, None) == {"dataset": "d", "filters": [CONDITION]}
    assert delete_body("d", None, None, "a = 1") == {"dataset": "d", "where": "a = 1"}
    for ids, predicate in [(None, None), (1, filters)]:
        with pytest.raises(InvalidArgument, match="one of the two"):
            delete_body("d", ids, predicate, None)


def test_what_json_cannot_hold_is_refused_here() -> None:
    with pytest.raises(InvalidArgument, match="NaN"):
        encode({"vector": [float("nan")]})
    with pytest.raises(InvalidArgument, match="object"):
        encode({"value": object()})


UNSENDABLE = [
    (b"a", "filter_value", "b'a', of type bytes; compare bytes by where="),
    (dt.timedelta(1), "filter_value", "of type timedelta; give a number in the unit"),
    (np.timedelta64(5, "ns"), "filter_value", "of type timedelta64; give a number in the unit"),
    (np.array([5], "m8[ns]"), "filter_value", "give a number in the unit"),
    (pd.Timedelta(5), "filter_value", "of type Timedelta; give a number in the unit"),
    (pa.scalar(dt.timedelta(1)), "filter_value", "give a number in the unit"),
    (["a", b"b"], "filter_value", "b'b', of type bytes"),
    (pd.NA, "filter_value", "<NA>, of type NAType; give a number, a text"),
    (1j, "filter_value", "1j, of type complex"),
    (float("nan"), "not_finite", "is NaN; give a finite number"),
    (np.float32("-inf"), "not_finite", "is -inf; give a finite number"),
]


@pytest.mark.parametrize("value, code, words", UNSENDABLE)
def test_a_filter_that_cannot_be_sent_is_told_with_its_column(value, code, words) -> None:
    for condition in [("raw", "=", value), {"field": "raw", "operator": "=", "value": value}]:
        for filters in [condition, {"logic": "OR", "filters": [condition]}]:
            with pytest.raises(InvalidArgument, match="the filter on 'raw'") as caught:
                encode({"filters": filter_list(filters)})
            assert caught.value.code == code
            assert words in caught.value.message


HUGE = np.longdouble("1e400")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value, told", [(HUGE, "inf"), (-HUGE, "-inf"), (np.array([HUGE]), "inf")])
def test_a_number_too_large_for_a_double_is_refused_by_one_voice(value, told) -> None:
    with pytest.raises(InvalidArgument, match=f"is {told}; give a finite number") as caught:
        encode({"filters": filter_list(("n", "<", value))})
    assert caught.value.code == "not_finite"
    assert plain(1 / HUGE) == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "value, told", [(float("nan"), "NaN"), (np.float32("inf"), "inf"), (HUGE, "inf")]
)
def test_an_option_that_is_not_finite_is_named(value, told) -> None:
    for options, name in [
        ({"max_distance": value}, "max_distance"),
        ({"k": value}, "k"),
        ({"beside": plain([{"column": "v", "weight": value}])}, "beside[0].weight"),
    ]:
        with pytest.raises(InvalidArgument) as caught:
            encode(search_ticket("d", [1.0], {"ef": 9, **options}))
        assert (caught.value.code, caught.value.message) == (
            "not_finite",
            f"{name} is {told}; give a finite number",
        )
