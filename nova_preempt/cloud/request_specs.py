# SPDX-License-Identifier: Apache-2.0
"""Reads the kind and the requirements of a request from its RequestSpec."""

import urllib.parse

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.compute import task_states
from nova.compute import vm_states
import nova.conf

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import extra_specs as specs
from nova_preempt.cloud import instances
import nova_preempt.conf
from nova_preempt.conf import preemption
from nova_preempt.core import model
from nova_preempt.core.nested import provider_fit
from nova_preempt.core.reservation import reservation_model
from nova_preempt.core.scheduling import preemption_policy

CONF = nova.conf.CONF
nova_preempt.conf.register_opts(CONF)

# The scheduler hint of Blazar's filter.
RESERVATION = reservation_model.HINT

_BY_TASK = {task_states.MIGRATING: 'live_migrate',
            task_states.UNSHELVING: 'unshelve',
            task_states.REBUILDING: 'evacuate'}


def is_preemptible(spec_obj):
    """Return whether the request is for a preemptible server.

    :param spec_obj: a nova.objects.RequestSpec
    """
    return specs.flavor_is_preemptible(instances.extra_specs_of(
        spec_obj.flavor)) or is_hinted(spec_obj)


def rank(spec_obj, server_uuid, promised=None, get_operation=str):
    """Return the core's rank of the request, which may preempt lower ones.

    :param promised: see nova_preempt.handover.eviction_policy
    :param get_operation: returns the operation; called if that matters
    """
    if not is_preemptible(spec_obj):
        return preemption_policy.NORMAL
    if promised is None:
        return preemption_policy.PREEMPTIBLE
    return promised.rank(
        server_uuid, instances.extra_specs_of(spec_obj.flavor),
        get_operation())


def is_hinted(spec_obj):
    """Return whether a hint makes it preemptible, if hints are allowed."""
    return (preemption.HINT in CONF.preemption.marks
            and specs.hint_is_preemptible(_hints(spec_obj)))


def _hints(spec_obj):
    return (spec_obj.scheduler_hints
            if 'scheduler_hints' in spec_obj else None) or {}


def reservations(spec_obj):
    """Return ids of the reservations that the hint names, mostly 0 or 1."""
    return reservation_model.ids_in_hints(_hints(spec_obj))


def reservations_of(server_uuid):
    """Return the reservation ids of a server's boot request, a frozenset.

    None if Nova has no such request.
    """
    try:
        return frozenset(reservations(objects.RequestSpec.get_by_instance_uuid(
            nova_context.get_admin_context(), server_uuid)))
    except exception.RequestSpecNotFound:
        return None


def get_operation(context, spec_obj, instance_uuid):
    """Return the operation, one of nova_preempt.conf.preemption.OPERATIONS.

    It is derived from the server's record, for the request does not have it.
    Rebuilds are excluded before (nova.scheduler.utils.request_is_rebuild).
    """
    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            context, instance_uuid)
        if mapping.cell_mapping is None:
            return 'create'
        found = cell_calls.call(
            mapping.cell_mapping, instances.read, [instance_uuid],
            attrs=['flavor'], make=instances.as_instance)
    except exception.InstanceMappingNotFound:
        return 'create'
    if not found:
        return 'create'
    instance, = found
    if instance.vm_state == vm_states.SHELVED_OFFLOADED:
        return 'unshelve'
    if instance.task_state in _BY_TASK:
        return _BY_TASK[instance.task_state]
    if instance.task_state == task_states.RESIZE_PREP:
        same = instance.flavor.flavorid == spec_obj.flavor.flavorid
        return 'cold_migrate' if same else 'resize'
    return 'create'


def protected_servers(spec_obj):
    """Return uuids of servers that the request refers to, as a set.

    They are never its victims, for their hosts decide where the new server
    may go: members of its server group, and the servers in its hints same_host
    and different_host.
    """
    protected = set()
    group = spec_obj.instance_group
    if group is not None and 'members' in group:
        protected.update(group.members or ())
    hints = _hints(spec_obj)
    for key in ('same_host', 'different_host'):
        protected.update(hints.get(key) or ())
    return protected


def has_pci_requests(spec_obj):
    """Return whether it requests PCI devices, which Nova picks on the host."""
    return bool('pci_requests' in spec_obj and spec_obj.pci_requests
                and spec_obj.pci_requests.requests)


def why_not_served(spec_obj, pci_in_placement, filters):
    """Return why preemption cannot serve the request, '' if it can.

    Victims are evicted only if the request is known to fit afterwards. PCI
    devices need Nova's filter for that, which checks each device, and devices
    of flavors have to be in Placement.

    :param pci_in_placement: whether Nova's scheduler requests the devices of
        flavors from Placement
    :param filters: names of the enabled filters
    """
    if not has_pci_requests(spec_obj):
        return ''
    if 'PciPassthroughFilter' not in filters:
        return ('it requests PCI devices, but PciPassthroughFilter is not in '
                '[filter_scheduler]enabled_filters')
    if not pci_in_placement and any(
            asked.source == objects.InstancePCIRequest.FLAVOR_ALIAS
            for asked in spec_obj.pci_requests.requests):
        return ('it requests PCI devices, which are not in Placement: '
                '[filter_scheduler]pci_in_placement is false')
    return ''


def groups(resources):
    """Return the core Request of a ResourceRequest, with its groups.

    If a single provider serves it the Request has amounts only, for
    provider_query() has all other requirements.

    :param resources: a nova.scheduler.utils.ResourceRequest
    """
    asked = resources.merged_resources()
    if not resources.get_num_of_suffixed_groups() and (
            provider_fit.COMMON.issuperset(asked)):
        return model.Request.of(asked)
    by_suffix = {}
    isolate = False
    subtrees = []
    for name, value in urllib.parse.parse_qsl(resources.to_querystring()):
        if name == 'group_policy':
            isolate = value == 'isolate'
        elif name == 'same_subtree':
            subtrees.append(frozenset(value.split(',')))
        else:
            for key in _OF_GROUP:
                if name.startswith(key):
                    by_suffix.setdefault(name[len(key):], []).append(
                        (key, value))
                    break
    found = model.Request(tuple(
        _group(suffix, by_suffix[suffix]) for suffix in sorted(by_suffix)),
        isolate, tuple(subtrees))
    if provider_fit.is_nested(found):
        return found
    return model.Request.of(asked)


_OF_GROUP = ('resources', 'required', 'member_of', 'in_tree')


def _group(suffix, params):
    amounts, traits, member_of, outside = {}, [], [], set()
    in_tree = ''
    for key, value in params:
        if key == 'resources':
            amounts.update((name, int(amount)) for name, amount in (
                item.split(':') for item in value.split(',')))
        elif key == 'required':
            traits.extend(value.split(','))
        elif key == 'member_of':
            forbids = value.startswith('!')
            uuids = value.removeprefix('!').removeprefix('in:').split(',')
            if forbids:
                outside.update(uuids)
            else:
                member_of.append(frozenset(uuids))
        else:
            in_tree = value
    return model.RequestGroup(
        amounts, suffix,
        frozenset(trait for trait in traits if not trait.startswith('!')),
        frozenset(trait[1:] for trait in traits if trait.startswith('!')),
        tuple(member_of), frozenset(outside), in_tree)


def provider_query(resources):
    """Return the parameters of GET /resource_providers for suitable hosts.

    These are all requirements but free capacity: traits, aggregates, a given
    host. Requirements of the root provider are included, or servers would be
    placed on providers that Nova does not own.

    If several providers serve a request, each may have some of the traits;
    then the core checks traits.

    :param resources: a nova.scheduler.utils.ResourceRequest
    :returns: [(name, value)]
    """
    traits = set()
    params = []
    of_root = ('root_required',
               ) if provider_fit.is_nested(groups(resources)) else (
                   'required', 'root_required')
    for name, value in urllib.parse.parse_qsl(resources.to_querystring()):
        if name in of_root:
            traits.update(value.split(','))
        elif name in ('member_of', 'in_tree'):
            params.append((name, value))
    if traits:
        params.append(('required', ','.join(sorted(traits))))
    return params
