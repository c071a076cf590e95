#!/usr/bin/env bash
# Checks that a Longbow server exposes the metrics that dashboards and alerts rely on.
#
#   scripts/validate_metrics.sh [URL]            default: http://127.0.0.1:9090/metrics
#   scripts/validate_metrics.sh --file FILE      a saved page instead of a server
#
# Each metric must have its HELP and TYPE lines and at least one sample; a metric with labels must carry
# them. A labelled metric is there only once its operation happened, and a dataset's gauges only while it
# exists, so run `python scripts/perf_test.py --search` first. Exit code 1 if anything is missing.
set -euo pipefail

# name type [labels, separated by commas]
METRICS="
longbow_flight_operations_total counter method,status
longbow_flight_duration_seconds histogram method
longbow_flight_rows_processed_total counter method,status
longbow_vector_search_latency_seconds histogram
longbow_vector_index_size gauge
longbow_index_queue_depth gauge
longbow_tombstones_total gauge|counter
longbow_wal_bytes_written_total counter
longbow_wal_fsync_duration_seconds histogram
longbow_doget_zero_copy_total counter type
longbow_dataset_lock_wait_duration_seconds histogram operation
"

usage() {
    sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//'
}

url="http://127.0.0.1:9090/metrics"
file=""
case "${1:-}" in
    -h | --help)
        usage
        exit 0
        ;;
    --file) file="${2:?--file needs a path}" ;;
    -*)
        echo "unknown flag $1" >&2
        usage >&2
        exit 2
        ;;
    ?*) url="$1" ;;
esac

if [ -n "$file" ]; then
    page="$(cat -- "$file")"
else
    case "$url" in
        */metrics) ;;
        *) url="${url%/}/metrics" ;;
    esac
    if ! page="$(curl --silent --show-error --fail --max-time 10 "$url")"; then
        echo "FAIL  no metrics at $url: is the server running, is its metrics address right?" >&2
        exit 1
    fi
fi

passed=0
failed=0

# Prints the first thing that is wrong with a metric, or nothing.
problem_of() {
    local name="$1" types="$2" labels="$3" help type samples label
    help="$(grep -m1 "^# HELP $name " <<<"$page" || true)"
    [ -n "$help" ] || { echo "no HELP line: it is missing, or nothing it counts has happened yet"; return; }
    [ -n "${help#"# HELP $name "}" ] || { echo "an empty HELP text"; return; }
    type="$(grep -m1 "^# TYPE $name " <<<"$page" | cut -d' ' -f4 || true)"
    [[ "$type" =~ ^($types)$ ]] || { echo "type '${type:-none}', expected $types"; return; }
    case "$type" in
        histogram) samples="$(grep -E "^${name}_count(\{| )" <<<"$page" || true)" ;;
        *) samples="$(grep -E "^$name(\{| )" <<<"$page" || true)" ;;
    esac
    [ -n "$samples" ] || { echo "no sample: nothing it counts has happened yet"; return; }
    for label in ${labels//,/ }; do
        grep -qE "[{,]$label=\"" <<<"$samples" || { echo "no label '$label'"; return; }
    done
}

judge() {
    local name="$1" problem="$2"
    if [ -z "$problem" ]; then
        echo "PASS  $name"
        passed=$((passed + 1))
    else
        echo "FAIL  $name: $problem"
        failed=$((failed + 1))
    fi
}

while read -r name types labels; do
    [ -n "$name" ] || continue
    judge "$name" "$(problem_of "$name" "$types" "$labels")"
done <<<"$METRICS"

# The memory accounting may have several gauges; one with a sample and a HELP text is the least.
memory="$(grep -oE '^longbow_memory_[a-z_]+' <<<"$page" | sort -u | head -1 || true)"
if [ -n "$memory" ]; then
    judge "$memory" "$(problem_of "$memory" "gauge|counter|histogram" "")"
else
    judge "longbow_memory_*" "no such metric"
fi

defined="$(grep -c '^# TYPE longbow_' <<<"$page" || true)"
undescribed="$(comm -23 \
    <(grep '^# TYPE ' <<<"$page" | cut -d' ' -f3 | sort -u) \
    <(grep '^# HELP ' <<<"$page" | cut -d' ' -f3 | sort -u) | tr '\n' ' ')"
judge "every metric has HELP" "${undescribed:+none for $undescribed}"

echo "$passed passed, $failed failed; the page defines $defined longbow metrics"
[ "$failed" -eq 0 ]
