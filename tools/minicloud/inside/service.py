# SPDX-License-Identifier: Apache-2.0
"""Starts a service of ours with other constants, for tests that are quick.

    python -m minicloud.inside.service CONSTANTS.json NAME [OPTIONS]
"""

import importlib
import importlib.metadata
import json
import sys


def set_constants(path):
    """Set what a file says: {name, such as core.energy.power_steps.BOOTS:
    value}.

    :raises AttributeError: there is no such constant
    """
    with open(path, encoding='utf-8') as stream:
        constants = json.load(stream)
    for name, value in constants.items():
        place, _, constant = name.rpartition('.')
        module = importlib.import_module(f'nova_preempt.{place}')
        getattr(module, constant)
        setattr(module, constant, value)


def main():
    path, *sys.argv[:] = sys.argv[1:]
    point, = importlib.metadata.entry_points(
        group='console_scripts', name=sys.argv[0])
    # It chooses between threads and eventlet, so before the constants.
    run = point.load()
    set_constants(path)
    return run()


if __name__ == '__main__':
    sys.exit(main())
