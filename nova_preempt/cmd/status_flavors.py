# SPDX-License-Identifier: Apache-2.0
"""Checks extra specs of flavors for nova-preempt-status."""

import difflib

from nova import exception

from nova_preempt import extra_spec_validators
from nova_preempt.cloud import extra_specs

# Limit of the faults in a message.
_MOST_SHOWN = 10


def fault(name, value):
    """Return the fault of an extra spec of a flavor, '' if valid.

    nova-api validates extra specs from microversion 2.86 on, and only where
    this package is installed with it; of Watcher's specification none.
    """
    namespace, colon, _key = name.partition(':')
    known = {item.name: item for item in extra_spec_validators.register()}
    for theirs, ours in extra_specs.LIFECYCLE.items():
        if ours in extra_specs.translated({theirs: value}):
            known[theirs] = known[ours]
    if not colon or not difflib.get_close_matches(
            namespace, {each.split(':')[0] for each in known}, cutoff=0.8):
        return ''
    if name not in known:
        meant = difflib.get_close_matches(name, known, 1)
        return 'is unknown' + (f'; {meant[0]} is known' if meant else '')
    try:
        known[name].validate(known[name].name, value)
    except exception.ValidationError as exc:
        return f'has the value {value!r}: {str(exc).splitlines()[0]}'
    return ''


def class_faults(flavors, names):
    """Return the faults of classes of flavors, as texts.

    :param flavors: [(name, extra specs)]
    :param names: of the configured classes
    """
    found = []
    for flavor, specs in sorted(flavors, key=lambda item: item[0]):
        name = specs.get(extra_specs.CLASS)
        if name and name not in names:
            found.append(f'flavor {flavor} has the class {name!r}, which '
                         f'must be one of {", ".join(names)}')
        elif name and not extra_specs.flavor_is_preemptible(
                extra_specs.translated(specs)):
            found.append(f'flavor {flavor} has the class {name!r}, but is '
                         'not preemptible')
    return found


def joined(faults):
    """Join faults to a text of limited length."""
    more = len(faults) - _MOST_SHOWN
    return ('; '.join(faults[:_MOST_SHOWN])
            + (f'; and {more} more' if more > 0 else '') + '.')
