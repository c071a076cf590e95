"""The load test: data, clients, tests and reports behind `scripts/perf_test.py`."""
