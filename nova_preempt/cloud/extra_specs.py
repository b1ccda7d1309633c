# SPDX-License-Identifier: Apache-2.0
"""Extra specs and the hint that make a server preemptible.

By its flavor: the extra spec ``preemptible:enabled`` or Blazar's
``blazar:preemptible``. By a scheduler hint ``preemptible`` where the operator
allows it.
"""

import re

from oslo_utils import strutils

ENABLED = 'preemptible:enabled'
BLAZAR = 'blazar:preemptible'
MINIMUM_RUNTIME = 'preemptible:minimum_runtime_s'
MAXIMUM_RUNTIME = 'preemptible:maximum_runtime_s'
NOTICE = 'preemptible:notice_s'
ACTION = 'preemptible:action'
RESTORE = 'preemptible:restore'
LADDER = 'preemptible:ladder'
CLASS = 'preemptible:class'
HINT = 'preemptible'
#: Of extra specs.
NAMESPACE = 'preemptible'

# resources:VGPU, resources1:VGPU, resources_gpu:VGPU
_RESOURCES = re.compile('resources[a-zA-Z0-9_-]*:(.+)')


def flavor_is_preemptible(extra_specs):
    return any(strutils.bool_from_string(extra_specs.get(key))
               for key in (ENABLED, BLAZAR))


def hint_is_preemptible(scheduler_hints):
    """Whether the hint asks for it; Nova keeps hints as lists of strings."""
    value = (scheduler_hints or {}).get(HINT)
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    return strutils.bool_from_string(value)


def minimum_runtime_s(extra_specs):
    """The flavor's promise in seconds, 0 where it gives none."""
    return _seconds(extra_specs, MINIMUM_RUNTIME) or 0


def maximum_runtime_s(extra_specs):
    """After how many seconds servers of the flavor end, None if never."""
    return _seconds(extra_specs, MAXIMUM_RUNTIME)


def notice_s(extra_specs):
    """How long before their end they are told, None if it does not say."""
    return _seconds(extra_specs, NOTICE)


def action(extra_specs):
    """What their end is, '' if the flavor does not say."""
    return extra_specs.get(ACTION, '')


def restore(extra_specs):
    """Whether they come back once there is room."""
    return strutils.bool_from_string(extra_specs.get(RESTORE))


def ladder(extra_specs):
    """Of which ladder of flavors it is a rung, '' if of none."""
    return extra_specs.get(LADDER, '')


def class_name(extra_specs):
    """Of which class its servers are, '' if of none.

    Only preemptible ones are of any: nobody ends others.
    """
    if not flavor_is_preemptible(extra_specs):
        return ''
    return extra_specs.get(CLASS, '')


def resource_classes(extra_specs):
    """The resource classes that a flavor names beside Nova's own."""
    classes = {match[1] for match in map(_RESOURCES.match, extra_specs)
               if match}
    if extra_specs.get('accel:device_profile'):
        classes.add('FPGA')
    return classes


def resource_amounts(extra_specs):
    """{resource class: amount} that a flavor names, of all its groups."""
    found = {}
    for key, value in extra_specs.items():
        match = _RESOURCES.match(key)
        if match and value.isdecimal():
            found[match[1]] = found.get(match[1], 0) + int(value)
    return found


def _seconds(extra_specs, key):
    """nova-api refuses anything but a number (see
    nova_preempt.extra_spec_validators).

    But only with microversion 2.86 or later; what is none counts as unset.
    """
    try:
        return max(0, int(extra_specs[key]))
    except (KeyError, ValueError):
        return None
