# SPDX-License-Identifier: Apache-2.0
"""Loads plugins that options name, by their entry points."""

import stevedore

from nova_preempt import exceptions


def load(namespace, name, option, hint=''):
    """Return the object of an entry point.

    :param option: the option that names it, as in "[energy]forecast is"
    :param hint: added to the error where loading it fails
    :raises InvalidConfiguration: it does not exist, or its requirements are
        not installed
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
