# SPDX-License-Identifier: Apache-2.0
"""Names the policy files of the Preemption API to Horizon.

Horizon executes this file within its settings.
"""

import pathlib

import nova_preempt_dashboard

_CONF = pathlib.Path(nova_preempt_dashboard.__file__).with_name('conf')
POLICY_FILES['preemption'] = str(  # noqa: F821
    _CONF / 'preemption_policy.yaml')
DEFAULT_POLICY_FILES['preemption'] = str(  # noqa: F821
    _CONF / 'default_policies' / 'preemption.yaml')
