#!/bin/bash
# SPDX-License-Identifier: Apache-2.0

# Render each page of the dashboard in a release of Horizon.
#
# Usage: run.sh HORIZON NOVA DIRECTORY
#
# For example "run.sh 25.3.2 2025.1 /tmp/horizon": installs this Horizon, with
# the constraints of this release of Nova, into DIRECTORY/venv-HORIZON, where uv
# has to be. The API runs in .venv, with a database and stand-ins of other
# services. The pages are in DIRECTORY/pages-HORIZON.

set -eu

horizon=$1 nova=$2
mkdir -p "$3"
directory=$(cd "$3" && pwd)
top=$(cd "$(dirname "$0")/../.." && pwd)
venv=$directory/venv-$horizon

# XStatic-Font-Awesome 6 has no files where Horizon up to 25.5 looks for them.
icons=
case $horizon in 25.*) icons='XStatic-Font-Awesome<5' ;; esac
test -d "$venv" || uv venv --quiet --python 3.11 "$venv"
# shellcheck disable=SC2086  # no word if it is empty
uv pip install --quiet --python "$venv/bin/python" \
    --constraint "$top/constraints/$nova.txt" "horizon==$horizon" $icons \
    hypothesis openstacksdk oslo.policy
uv pip install --quiet --no-deps --python "$venv/bin/python" --editable "$top"

# The test of the policy file needs Nova.
cd "$top/tests/unit/dashboard"
find . -name 'test_*.py' ! -name test_policy.py -printf '%f\0' | xargs -0 \
    "$venv/bin/python" -W ignore -m unittest --quiet
cd "$top"
PYTHONPATH=.:tools/strict .venv/bin/python -W ignore \
    tools/horizon/serve_api.py "$directory/api.json" &
api=$!
trap 'kill $api; rm -f "$directory/api.json"' EXIT
for _ in {1..180}; do
    test ! -e "$directory/api.json" || break
    sleep 1
done
"$venv/bin/python" -W ignore tools/horizon/render_pages.py \
    "$directory/api.json" "$directory/pages-$horizon"
