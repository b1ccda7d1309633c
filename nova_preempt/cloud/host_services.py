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
"""Whether compute services are up, as Nova's records of them say."""

import functools

from nova import exception
from nova import objects
from nova import servicegroup

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import instance_poller
from nova_preempt.cloud import nova_api


@functools.cache
def _service_group():
    return servicegroup.API()


def is_up(service):
    """Whether a service reports, and nobody has said that it is down.

    :param service: Nova's Service, or its dict in a HostState
    """
    return bool(_service_group().service_is_up(service))


def host_is_up(server_uuid, host):
    """Whether the compute service of a host is up.

    :param server_uuid: of a server there: it tells in which cell to look
    :raises NovaError: nobody can tell
    """
    try:
        cell = instance_poller.find_cells([server_uuid]).get(server_uuid)
        # Without a cell there is no server any more that could end.
        return cell is None or is_up(cell_calls.call(
            cell, objects.Service.get_by_compute_host, host))
    except exception.ComputeHostNotFound:
        return False
    except Exception as exc:
        raise nova_api.NovaError(
            f'cannot tell whether host {host} is up: {exc}') from exc
