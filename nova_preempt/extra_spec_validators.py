# SPDX-License-Identifier: Apache-2.0
"""Validators of our flavor extra specs, loaded by nova-api.

nova-api finds them in the entry point group
``nova.api.extra_spec_validators`` and refuses unknown keys and bad values of
the namespace ``preemptible`` with 400 (microversion 2.86 or later).
"""

from nova.api.validation.extra_specs import base

from nova_preempt.cloud import extra_specs as specs
from nova_preempt.conf.preemption import ACTIONS


def register():
    """Return the validators, for nova.api.validation.extra_specs."""
    return [
        _validator(
            specs.ENABLED, bool, 'Whether servers are preemptible.',
            'Whether servers of this flavor are preemptible: they use '
            'idle capacity and are evicted when a normal server needs it.'),
        _validator(
            specs.MINIMUM_RUNTIME, int, 'A number of seconds.',
            'How long a preemptible server of this flavor runs at least '
            'before it may be ended, in seconds. It can only lengthen '
            "the operator's [preemption]minimum_runtime_s.", min=0),
        _validator(
            specs.MAXIMUM_RUNTIME, int, 'A number of seconds.',
            'How long a preemptible server of this flavor runs at most, '
            'in seconds. It then gets notice and ends.', min=1),
        _validator(
            specs.NOTICE, int, 'A number of seconds.',
            'How long before its end a preemptible server of this flavor '
            'is told, in seconds, within [preemption]minimum_notice_s '
            'and maximum_notice_s. The default is [preemption]notice_s.',
            min=0),
        _validator(
            specs.ACTION, str, 'An action.',
            'What happens to a preemptible server of this flavor when it '
            'is evicted, if [preemption]actions allows it. migrate: '
            'it is live-migrated, and meets the default action of that '
            'option only where it cannot be.', enum=list(ACTIONS)),
        _validator(
            specs.RESTORE, bool, 'Whether servers come back.',
            'Whether a preemptible server of this flavor that was shelved '
            'is unshelved automatically once there is capacity.'),
        _validator(
            specs.LADDER, str, 'A name.',
            'The name of a ladder of flavors, which differ in their '
            'number of cores. A waiting request may name the ladder, '
            'and gets one of its flavors when it is dispatched.'),
        _validator(
            specs.CLASS, str, 'The name of a class.',
            'The class of preemptible servers of this flavor, which '
            '[classes]qos_class defines: it promises which share of time '
            'the servers run.'),
    ]


def _validator(name, kind, value, description, **limits):
    """Make a validator of nova-api for an extra spec."""
    return base.ExtraSpecValidator(
        name=name, description=description,
        value={'type': kind, 'description': value, **limits})
