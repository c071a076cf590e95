"""Random predicates, beside DuckDB over the same rows as Parquet."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROWS = 500
ROUNDS = 20
PREDICATES = 100
WORDS = ["sea", "See", "sand", "", "under_sea", "100%", "it's", "éclair", "a b", "seaside"]
NUMBERS = {"a": (-20, 20), "b": (0, 5), "c": (-3, 3)}


def table(dice: random.Random) -> pa.Table:
    """Rows of several types, a fifth of the values null."""

    def maybe(value):
        return None if dice.random() < 0.2 else value

    def column(make, kind):
        return pa.array([maybe(make()) for _ in range(ROWS)], kind)

    begin, hour = dt.datetime(2023, 1, 1), dt.timedelta(hours=1)
    numbers = pa.array([float(n % 7) for n in range(2 * ROWS)], pa.float32())
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "vector": pa.FixedSizeListArray.from_arrays(numbers, 2),
            "a": column(lambda: dice.randint(*NUMBERS["a"]), pa.int32()),
            "b": column(lambda: dice.randint(*NUMBERS["b"]), pa.int8()),
            "c": column(lambda: dice.randint(-12, 12) / 4, pa.float64()),
            "s": column(lambda: dice.choice(WORDS), pa.string()),
            "t": column(lambda: dice.choice(WORDS), pa.string()),
            "f": column(lambda: dice.random() < 0.5, pa.bool_()),
            "moment": column(lambda: begin + hour * dice.randint(0, 20_000), pa.timestamp("us")),
        }
    )


class Grammar:
    """What both understand alike: `/` and `~`, say, they do not."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def quoted(self) -> str:
        return "'" + self.dice.choice(WORDS).replace("'", "''") + "'"

    def number(self, depth: int) -> str:
        dice = self.dice
        if depth <= 0 or dice.random() < 0.4:
            return dice.choice(["a", "b", "c", "id", str(dice.randint(-9, 9)), "0.5", "2"])
        inner = [self.number(depth - 1) for _ in range(2)]
        return dice.choice(
            [
                f"({inner[0]} + {inner[1]})",
                f"({inner[0]} - {inner[1]})",
                f"({inner[0]} * {inner[1]})",
                f"abs({inner[0]})",
                f"coalesce({inner[0]}, {inner[1]})",
                f"nullif(a, {dice.randint(-9, 9)})",
                f"CASE WHEN {self.condition(depth - 1)} THEN {inner[0]} ELSE {inner[1]} END",
                f"length({self.text(depth - 1)})",
                "(a % 7)",
                "extract(month FROM moment)",
            ]
        )

    def text(self, depth: int) -> str:
        dice = self.dice
        if depth <= 0 or dice.random() < 0.5:
            return dice.choice(["s", "t", self.quoted()])
        inner = [self.text(depth - 1) for _ in range(2)]
        return dice.choice(
            [
                f"({inner[0]} || {inner[1]})",
                f"upper({inner[0]})",
                f"lower({inner[0]})",
                f"substr({inner[0]}, 2, 3)",
                f"coalesce({inner[0]}, {inner[1]})",
                f"replace({inner[0]}, 'sea', 'x')",
            ]
        )

    def condition(self, depth: int) -> str:
        dice = self.dice
        if depth > 0 and dice.random() < 0.5:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            return dice.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])
        number, other = self.number(depth), self.number(depth)
        text = self.text(depth)
        compare = dice.choice(["=", "<>", "<", "<=", ">", ">="])
        pattern = dice.choice(["'%sea%'", "'s__'", "'%e'", "'S%'", "''", "'%'", "'1%'"])
        values = ", ".join(str(dice.randint(-9, 9)) for _ in range(dice.randint(1, 5)))
        words = ", ".join(self.quoted() for _ in range(dice.randint(1, 4)))
        day = f"TIMESTAMP '2023-{dice.randint(1, 12):02}-{dice.randint(1, 28):02} 00:00:00'"
        return dice.choice(
            [
                f"{number} {compare} {other}",
                f"{number} {compare} {other}",
                f"{text} {compare} {self.text(depth)}",
                f"{text} {dice.choice(['LIKE', 'NOT LIKE', 'ILIKE'])} {pattern}",
                f"{number} BETWEEN {dice.randint(-9, 0)} AND {dice.randint(0, 9)}",
                f"a {dice.choice(['IN', 'NOT IN'])} ({values})",
                f"{text} {dice.choice(['IN', 'NOT IN'])} ({words})",
                f"{dice.choice(['a', 's', 'f', 'moment'])} IS {dice.choice(['', 'NOT '])}NULL",
                # In parentheses: the parser takes all that follows for the right side.
                f"(a IS {dice.choice(['', 'NOT '])}DISTINCT FROM {other})",
                f"moment {compare} {day}",
                "f",
                f"f = ({number} > 0)",
            ]
        )


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_predicates_pass_what_duckdb_lets_pass(remote, dataset, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    rows = table(dice)
    remote.insert(dataset, rows.slice(0, ROWS // 2))
    remote.insert(dataset, rows.slice(ROWS // 2))
    pq.write_table(rows, tmp_path / "rows.parquet")
    other = duckdb.connect()
    other.execute(f"CREATE VIEW rows AS SELECT * FROM '{tmp_path / 'rows.parquet'}'")
    grammar = Grammar(dice)
    passed = 0
    for _ in range(PREDICATES):
        predicate = grammar.condition(3)
        expected = other.execute(f"SELECT id FROM rows WHERE {predicate} ORDER BY id").fetchall()
        got = remote.download_arrow(dataset, ["id"], where=predicate)["id"].to_pylist()
        assert got == [id for (id,) in expected], predicate
        passed += len(got)
    # Neither all nor nothing, or little would be shown.
    assert 0.1 < passed / (PREDICATES * ROWS) < 0.9
