#!/bin/sh
# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
