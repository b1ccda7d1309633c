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
