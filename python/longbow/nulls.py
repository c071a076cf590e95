"""Columns of nulls alone, which say nothing of their type."""

from __future__ import annotations

from collections.abc import Container
from typing import Callable

import pyarrow as pa

from .errors import InvalidArgument


class Nulls:
    """Gives them the type that the dataset has for them. One that the dataset does not have is
    left out: it gets its type from its first value, not for ever from their lack."""

    def __init__(self, known: Callable[[], pa.Schema | None], add_columns: bool = True) -> None:
        """``known`` tells the schema of the dataset as it is now, None if there is none yet."""
        self._known = known
        self._add_columns = add_columns
        self._schema: pa.Schema | None = None
        self._asked = False
        #: The columns that were left out, in the order of the first sight.
        self.left_out: dict[str, None] = {}

    def typed(self, arrays: dict[str, pa.Array], sent: Container[str]) -> dict[str, pa.Array]:
        """The columns of a batch that have a type; ``sent`` are those of the batches before."""
        out = {}
        for name, array in arrays.items():
            if not pa.types.is_null(array.type) or name in sent or name == "id":
                out[name] = array
            elif (kind := self._kind(name)) is not None:
                out[name] = pa.nulls(len(array), kind)
            else:
                self.left_out[name] = None
        return out

    def _kind(self, name: str) -> pa.DataType | None:
        if not self._asked:
            self._schema, self._asked = self._known(), True
        if self._schema is None:
            return None
        if name in self._schema.names:
            return self._schema.field(name).type
        if not self._add_columns:
            have = ", ".join(self._schema.names)
            text = f"the dataset has no column {name!r}, and add_columns is False; it has {have}"
            raise InvalidArgument("column_not_found", text)
        return None
