# SPDX-License-Identifier: Apache-2.0
"""Who says which hosts are reserved.

A lease service is an entry point in the group ``nova_preempt.lease_service``,
made with the configuration (and doing nothing yet), with two methods that may
raise anything and that are called by one thread only:

``fetch()``
    returns the leases that are pending or active: a collection of Lease, or
    the Leases themselves, see nova_preempt.core.leases; the same object as
    before where nothing has changed.

``get(lease_id)``
    returns one Lease, in whatever status, None if there is none.

Both must answer, or fail, within a bounded time.
"""
