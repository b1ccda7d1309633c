#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Make a virtual environment with this project in it: with uv where it is there
# and works, for it takes a third of the time, with pip otherwise.
#
# Usage: make_venv.sh PYTHON DIRECTORY CONSTRAINTS ARGUMENT...
#
# The arguments are those of "pip install", the project itself among them.

set -eu

python=$1 directory=$2 constraints=$3
shift 3

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11) and
    "Python 3.11 or newer is needed")'

install() {
    # Modules are compiled when they are imported, which is far less than all.
    if [ -n "$uv" ]; then
        uv pip install --quiet --python "$directory/bin/python" "$@"
    else
        "$directory/bin/python" -m pip install --quiet --no-compile \
            --disable-pip-version-check "$@"
    fi
}

make() {
    "$python" -m venv $options "$directory" &&
        # Build requirements, as no isolated environment is used.
        install --constraint "$constraints" pbr pip setuptools &&
        install --constraint "$constraints" --no-build-isolation "$@"
}

uv=$(command -v uv || true)
# Packages may be added to an existing environment, but not to those in the
# tree, which may have another release of Nova.
options=
case $directory in .venv | .venv-demo) options=--clear ;; esac

if [ -n "$uv" ]; then
    options="$options --without-pip"
    make "$@" && exit
    echo 'Retrying without uv.' >&2
    uv=
    options=${options% --without-pip}
fi
make "$@"
