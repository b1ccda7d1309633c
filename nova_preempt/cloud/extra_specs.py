# SPDX-License-Identifier: Apache-2.0
"""Extra specs and the scheduler hint that make a server preemptible.

The extra spec is ``preemptible:enabled`` or Blazar's ``blazar:preemptible``.
``lifecycle:preemptable``, of Watcher's specification, and the hint
``preemptible`` do so where [preemption]marks allows them.
"""

import re

from oslo_config import cfg
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
#: Extra specs of Watcher's specification, and ours of the same meaning.
LIFECYCLE = {'lifecycle:preemptable': ENABLED,
             'lifecycle:preempt_policy': ACTION}
#: Namespace of our extra specs.
NAMESPACE = 'preemptible'

# resources:VGPU, resources1:VGPU, resources_gpu:VGPU
_RESOURCES = re.compile('resources[a-zA-Z0-9_-]*:(.+)')


def translated(extra_specs, marks=()):
    """Return extra specs with ours for those of LIFECYCLE, if allowed.

    Where a flavor has both, ours count.

    :param marks: [preemption]marks where this option is not registered
    """
    found = LIFECYCLE.keys() & extra_specs.keys()
    if not found or 'lifecycle' not in getattr(
            getattr(cfg.CONF, 'preemption', None), 'marks', marks):
        return extra_specs
    return {**{LIFECYCLE[key]: extra_specs[key] for key in found},
            **extra_specs}


def flavor_is_preemptible(extra_specs):
    return any(strutils.bool_from_string(extra_specs.get(key))
               for key in (ENABLED, BLAZAR))


def hint_is_preemptible(scheduler_hints):
    """Return whether the hint is true; Nova keeps hints as string lists."""
    value = (scheduler_hints or {}).get(HINT)
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    return strutils.bool_from_string(value)


def minimum_runtime_s(extra_specs):
    """Return the guaranteed run time in seconds, 0 if there is none."""
    return _seconds(extra_specs, MINIMUM_RUNTIME) or 0


def maximum_runtime_s(extra_specs):
    """Return the maximum run time in seconds, None if there is none."""
    return _seconds(extra_specs, MAXIMUM_RUNTIME)


def notice_s(extra_specs):
    """Return the notice in seconds, None if the flavor does not set it."""
    return _seconds(extra_specs, NOTICE)


def action(extra_specs):
    """Return the eviction action, '' if the flavor does not set it."""
    return extra_specs.get(ACTION, '')


def restore(extra_specs):
    """Return whether evicted servers are restored once there is capacity."""
    return strutils.bool_from_string(extra_specs.get(RESTORE))


def ladder(extra_specs):
    """Return the name of the flavor's ladder, '' if it has none."""
    return extra_specs.get(LADDER, '')


def class_name(extra_specs):
    """Return the class of service of the flavor's servers, '' if none.

    Only preemptible servers have a class.
    """
    if not flavor_is_preemptible(extra_specs):
        return ''
    return extra_specs.get(CLASS, '')


def resource_classes(extra_specs):
    """Return the resource classes that a flavor requests by extra specs."""
    classes = {match[1] for match in map(_RESOURCES.match, extra_specs)
               if match}
    if extra_specs.get('accel:device_profile'):
        classes.add('FPGA')
    return classes


def resource_amounts(extra_specs):
    """Return {resource class: amount} of the extra specs of all groups."""
    found = {}
    for key, value in extra_specs.items():
        match = _RESOURCES.match(key)
        if match and value.isdecimal():
            found[match[1]] = found.get(match[1], 0) + int(value)
    return found


def _seconds(extra_specs, key):
    """Return a number of seconds, None if it is unset or no number.

    nova-api refuses other values since microversion 2.86, see
    nova_preempt.extra_spec_validators.
    """
    try:
        return max(0, int(extra_specs[key]))
    except (KeyError, ValueError):
        return None
