#!/usr/bin/env bash
# Runs the kernels' tests on 64-bit ARM: cross-compiled, and emulated by QEMU. What is missing of Debian's packages and of
# rustup's targets is installed. Arguments go to `cargo test`, for example: scripts/neon.sh -p longbow-index --lib
set -euo pipefail

target=aarch64-unknown-linux-gnu
if ! command -v qemu-aarch64-static > /dev/null || ! command -v aarch64-linux-gnu-gcc > /dev/null; then
    apt-get install --yes --quiet qemu-user-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross
fi
rustup target add "$target"

cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/neon"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
if [ $# -eq 0 ]; then
    set -- -p longbow-kernels
fi
exec cargo test --release --locked --target "$target" "$@"
