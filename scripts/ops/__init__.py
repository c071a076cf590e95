"""Operations on a running server: the commands behind `scripts/ops_test.py`."""
