#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build the image of Containerfile with buildah, and start its commands.
#
#     tools/build_image.sh PYTHON [OPTION...]
#
# PYTHON makes the wheel, which replaces those in dist/. The options are those
# of "buildah build", for example --build-arg NOVA=2026.1 or --volume
# /etc/pip.conf:/etc/pip.conf:ro.
set -euo pipefail

python=$1
shift
rm -f dist/*.whl
"$python" -m build --wheel --outdir dist
# docker is the format that has SHELL.
buildah build --format docker --tag nova-preempt "$@" .
container=$(buildah from --pull-never localhost/nova-preempt)
trap 'buildah rm "$container"' EXIT
for command in engine scheduler webhook manage status; do
    buildah run "$container" -- "nova-preempt-$command" --help >/dev/null
done
buildah run "$container" -- gunicorn --version
echo 'The image localhost/nova-preempt is built, and its commands start.'
