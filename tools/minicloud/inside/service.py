# SPDX-License-Identifier: Apache-2.0
"""Starts a service with constants changed, so that tests are quick.

    python -m minicloud.inside.service CONSTANTS.json NAME [OPTIONS]
"""

import importlib
import importlib.metadata
import json
import sys


def set_constants(path):
    """Set the constants of a file: {core.energy.power_steps.BOOTS: value}.

    :raises AttributeError: a constant does not exist
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
    # NOTE: loaded first, as it chooses between threads and eventlet.
    run = point.load()
    set_constants(path)
    return run()


if __name__ == '__main__':
    sys.exit(main())
