# SPDX-License-Identifier: Apache-2.0
"""Lease services, which tell which hosts are reserved.

A lease service is an entry point in the group ``nova_preempt.lease_service``.
It is made with the configuration, without doing anything yet. One thread calls
its two methods, which may raise any exception:

``fetch()``
    returns the leases that are pending or active: a collection of HostLease,
    or the Leases themselves, see nova_preempt.core.reservation.leases; the
    same object as before if nothing has changed.

``get(lease_id)``
    returns a HostLease of any status, None if it does not exist.

Both must answer or fail within a bounded time.
"""
