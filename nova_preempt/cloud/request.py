# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""What kind of scheduling request this is."""

import urllib.parse

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.compute import task_states
from nova.compute import vm_states
import nova.conf

from nova_preempt.cloud import extra_specs as specs
import nova_preempt.conf
from nova_preempt.core.scheduling import policy

CONF = nova.conf.CONF
nova_preempt.conf.register_opts(CONF)

# The hint, as Blazar's filter has it.
RESERVATION = 'reservation'

_BY_TASK = {
    task_states.MIGRATING: 'live_migrate',
    task_states.UNSHELVING: 'unshelve',
    task_states.REBUILDING: 'evacuate',
}


def is_preemptible(spec_obj):
    """Whether the request is for a preemptible server.

    :param spec_obj: a nova.objects.RequestSpec
    """
    flavor = spec_obj.flavor
    extra_specs = flavor.extra_specs if 'extra_specs' in flavor else None
    if specs.flavor_is_preemptible(extra_specs or {}):
        return True
    return is_hinted(spec_obj)


def rank(spec_obj):
    """The core's rank of the request: who has a lower one gives way."""
    return policy.PREEMPTIBLE if is_preemptible(spec_obj) else policy.NORMAL


def is_hinted(spec_obj):
    """Whether a hint makes it one, where the operator allows that."""
    if not CONF.preemption.allow_hint:
        return False
    hints = (spec_obj.scheduler_hints
             if 'scheduler_hints' in spec_obj else None)
    return specs.hint_is_preemptible(hints)


def reservations(spec_obj):
    """The ids of the reservations that a hint names, mostly none or one."""
    hints = (spec_obj.scheduler_hints
             if 'scheduler_hints' in spec_obj else None) or {}
    value = hints.get(RESERVATION) or ()
    return (value,) if isinstance(value, str) else tuple(value)


def get_operation(context, spec_obj, instance_uuid):
    """One of nova_preempt.conf.preemption.OPERATIONS.

    The request does not say it; the server's own record does. A rebuild is
    told apart before (nova.scheduler.utils.request_is_rebuild).
    """
    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            context, instance_uuid)
        if mapping.cell_mapping is None:
            return 'create'
        with nova_context.target_cell(context,
                                      mapping.cell_mapping) as cell_context:
            instance = objects.Instance.get_by_uuid(
                cell_context, instance_uuid, expected_attrs=['flavor'])
    except (exception.InstanceMappingNotFound, exception.InstanceNotFound):
        return 'create'
    if instance.vm_state == vm_states.SHELVED_OFFLOADED:
        return 'unshelve'
    if instance.task_state in _BY_TASK:
        return _BY_TASK[instance.task_state]
    if instance.task_state == task_states.RESIZE_PREP:
        same = instance.flavor.flavorid == spec_obj.flavor.flavorid
        return 'cold_migrate' if same else 'resize'
    return 'create'


def protected_servers(spec_obj):
    """The uuids of servers that the request itself refers to.

    Where they are decides where the new one may go, so they are never its
    victims: members of its server group, and the servers in its hints
    same_host and different_host.
    """
    protected = set()
    group = spec_obj.instance_group
    if group is not None and 'members' in group:
        protected.update(group.members or ())
    hints = (spec_obj.scheduler_hints
             if 'scheduler_hints' in spec_obj else None) or {}
    for key in ('same_host', 'different_host'):
        protected.update(hints.get(key) or ())
    return protected


def why_not_served(spec_obj, resources):
    """Why preemption cannot serve the request, '' if it can.

    :param resources: a nova.scheduler.utils.ResourceRequest
    """
    if resources.get_num_of_suffixed_groups():
        return ('it has granular request groups, which preemption does not '
                'serve yet')
    if 'pci_requests' in spec_obj and spec_obj.pci_requests and (
            spec_obj.pci_requests.requests):
        return 'it asks for PCI devices, which preemption does not serve yet'
    return ''


def provider_query(resources):
    """The parameters of GET /resource_providers for hosts that may serve it.

    All that the request asks of a host but free space: traits, aggregates,
    a given host. What Placement asks of the root provider is asked here too,
    or servers would land on providers that Nova does not own.

    :param resources: a nova.scheduler.utils.ResourceRequest
    :returns: [(name, value)]
    """
    traits = set()
    params = []
    for name, value in urllib.parse.parse_qsl(resources.to_querystring()):
        if name in ('required', 'root_required'):
            traits.update(value.split(','))
        elif name in ('member_of', 'in_tree'):
            params.append((name, value))
    if traits:
        params.append(('required', ','.join(sorted(traits))))
    return params
