#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Build the sdist and the wheel, and try the wheel in an empty environment.

Usage: check_packages.py CONSTRAINTS

Checks that each file of the repository is in the sdist, that each file of the
packages is in the wheel, and that both have valid metadata. Then installs the
wheel, with its requirements, into a new environment and runs the demo there.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile

TOP = pathlib.Path(__file__).parents[1]
PACKAGES = ('nova_preempt', 'nova_preempt_dashboard',
            'nova_preempt_tempest_plugin')
#: Each ends with an exception, or prints what it finds.
SCENARIO = 'fgcs-1'


def run(*command, **options):
    """Run a command; raise CalledProcessError if it fails."""
    subprocess.run([str(each) for each in command], check=True, **options)


def tracked():
    """Return the names of all files of the repository, links resolved."""
    names = subprocess.run(
        ['git', 'ls-files', '-z'], cwd=TOP, check=True, capture_output=True,
        text=True).stdout.split('\0')
    return {name for name in names if name and (TOP / name).is_file()}


def build(directory):
    """Return the paths of the sdist and of the wheel that is built of it."""
    run(sys.executable, '-m', 'build', '--no-isolation', '--outdir',
        directory, TOP, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run(sys.executable, '-m', 'twine', 'check', '--strict',
        *directory.iterdir())
    sdist, = directory.glob('*.tar.gz')
    wheel, = directory.glob('*.whl')
    return sdist, wheel


def missing(sdist, wheel):
    """Return the names of files that are not in the sdist, or the wheel."""
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition('/')[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    files = tracked()
    return sorted(
        {f'sdist: {name}' for name in files - in_sdist
         if not name.startswith('.')}
        | {f'wheel: {name}' for name in files - in_wheel
           if name.startswith(tuple(f'{each}/' for each in PACKAGES))})


def try_wheel(wheel, constraints, directory):
    """Install the wheel into an empty environment, and run the demo."""
    venv.create(directory, with_pip=True)
    run(directory / 'bin/python', '-m', 'pip', 'install', '--quiet',
        '--no-compile', '--disable-pip-version-check', '--constraint',
        constraints, f'{wheel}[embedded]')
    # Nothing of the tree may be found there.
    environ = {name: value for name, value in os.environ.items()
               if name != 'PYTHONPATH'}
    run(directory / 'bin/nova-preempt-demo', '--scenario', SCENARIO,
        cwd=directory, env=environ)


def main(constraints):
    """Check all; return the exit status."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix='packages-'))
    try:
        sdist, wheel = build(directory / 'dist')
        lost = missing(sdist, wheel)
        for each in lost:
            print(f'Not in the {each}')
        if lost:
            return 1
        try_wheel(wheel, TOP / constraints, directory / 'venv')
    except subprocess.CalledProcessError as exc:
        print(f'{" ".join(exc.cmd)} failed with {exc.returncode}')
        return 1
    finally:
        shutil.rmtree(directory)
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
