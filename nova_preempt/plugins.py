# SPDX-License-Identifier: Apache-2.0
"""Plugins that options name, found by their entry points."""

import stevedore

from nova_preempt import exceptions


def load(namespace, name, option, hint=''):
    """The object of the entry point of this name.

    :param option: who names it, such as "[energy]forecast is"
    :param hint: what may help where it cannot be loaded
    :raises InvalidConfiguration: there is none, or what it needs is not
        installed
    """
    broken = {}
    manager = stevedore.ExtensionManager(
        namespace, on_load_failure_callback=lambda _manager, point, exc:
        broken.setdefault(point.name, exc))
    if name in manager.names():
        return manager[name].plugin
    if name in broken:
        raise exceptions.InvalidConfiguration(
            f'{option} {name!r}, which cannot be loaded: {broken[name]}{hint}')
    raise exceptions.InvalidConfiguration(
        f'{option} {name!r}; known are: ' + ', '.join(sorted(manager.names())))
