# SPDX-License-Identifier: Apache-2.0
"""The commands "openstack preemption ...". Needs nothing of Nova.

They call the service by nova_preempt.sdk.
"""
