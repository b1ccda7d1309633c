# SPDX-License-Identifier: Apache-2.0

"""Default configuration of the embedded cloud."""

OPTIONS = {
    None: {
        'cpu_allocation_ratio': 1.0,
        'ram_allocation_ratio': 1.0,
        'disk_allocation_ratio': 1.0,
        'reserved_host_cpus': 0,
        'reserved_host_memory_mb': 0,
        'reserved_host_disk_mb': 0,
    },
    'quota': {'instances': -1, 'cores': -1, 'ram': -1},
    'filter_scheduler': {
        'available_filters': [
            'nova.scheduler.filters.all_filters',
            'nova_preempt.scheduler.filters.all_filters'],
        'weight_classes': [
            'nova.scheduler.weights.all_weighers',
            'nova_preempt.scheduler.weights.all_weighers'],
    },
    'preemption': {
        'auth_type': 'admin_token',
        # A fake hypervisor ends a server at once, and no guest listens.
        'notice_s': 0,
    },
}

#: {a constant of the services: its value here}.
CONSTANTS = {
    # No periodic task runs here that keeps what is known fresh.
    'nova_preempt.core.scheduling.cloud_port.MAX_AGE_S': 0.0,
    'nova_preempt.core.scheduling.cloud_port.LIST_MAX_AGE_S': 0.0,
    'nova_preempt.cloud.instance_poller.POLL_INTERVAL_S': 0.02,
}
