# SPDX-License-Identifier: Apache-2.0
"""Flavors, and requests as Nova's conductor sends them to the scheduler."""

import functools

from nova import objects


def flavor(number, name, vcpus, extra_specs):
    """Return a Flavor with 1 GiB and 10 GiB of disk per vCPU."""
    return objects.Flavor(
        id=number, flavorid=str(number), name=name, vcpus=vcpus,
        memory_mb=vcpus * 1024, root_gb=vcpus * 10, ephemeral_gb=0, swap=0,
        rxtx_factor=1.0, vcpu_weight=0, disabled=False, is_public=True,
        extra_specs=dict(extra_specs), deleted=False)


# NOTE: a Flavor is compared by identity, and none of an exploration changes.
@functools.lru_cache(maxsize=1000)
def is_preemptible(item):
    """Return whether servers of a Flavor are preemptible."""
    return item.extra_specs.get('preemptible:enabled') == 'true'


@functools.lru_cache(maxsize=1000)
def amounts(item):
    """{class: amount} that Nova claims for a Flavor; nobody changes it."""
    return {'VCPU': item.vcpus, 'MEMORY_MB': item.memory_mb,
            'DISK_GB': item.root_gb}


def make(server, count, new_flavor=None):
    """A RequestSpec for a Server."""
    spec = objects.RequestSpec(
        flavor=new_flavor or server.flavor, instance_uuid=server.uuid,
        project_id=server.project_id, user_id=server.user_id,
        num_instances=count, image=objects.ImageMeta(
            properties=objects.ImageMetaProps()),
        numa_topology=None, pci_requests=objects.InstancePCIRequests(
            requests=[]), availability_zone=None, force_hosts=None,
        force_nodes=None, ignore_hosts=None, requested_destination=None,
        retry=None, limits=objects.SchedulerLimits(), instance_group=None,
        scheduler_hints={}, security_groups=objects.SecurityGroupList(),
        network_metadata=objects.NetworkMetadata(
            physnets=set(), tunneled=False),
        requested_networks=objects.NetworkRequestList(objects=[]),
        is_bfv=False, requested_resources=[],
        request_level_params=objects.RequestLevelParams())
    spec.obj_reset_changes(recursive=True)
    return spec
