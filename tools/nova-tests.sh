#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Run Nova's own tests on Nova's scheduler manager and on ours, and compare.
#
#   tools/nova-tests.sh [BIN] [--quick] [--manager both|stock|ours] ...
#
# BIN is the bin directory of a virtual environment with Nova and nova_preempt;
# without it, python comes from PATH. "--help" tells the other options.

set -eu

python=python3
if [ -n "${1:-}" ] && [ -x "$1/python" ]; then
    python=$1/python
    shift
elif command -v python >/dev/null; then
    python=python
fi
PYTHONPATH=$(cd "$(dirname "$0")" && pwd)${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
exec "$python" -m nova_tests "$@"
