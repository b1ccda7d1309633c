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
"""What Nova has recorded of servers, of those too that are gone."""

import dataclasses
import heapq

from nova import objects
from nova.scheduler import utils

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import instances

_PAGE = 500


def servers(cells, page=_PAGE):
    """Yield the ObservedServers of cells, in order of their creation.

    A page of each cell is read. Those of which Nova has deleted even the
    flavor, as an archive does, are not there any more.

    :param cells: {uuid: CellMapping}
    """
    return heapq.merge(*(_of_cell(cell, page) for cell in cells.values()),
                       key=lambda server: (server.created_at, server.uuid))


def _of_cell(cell, page):
    marker = None
    while True:
        found = list(cell_calls.call(
            cell, objects.InstanceList.get_by_filters, {},
            expected_attrs=['flavor'], limit=page, marker=marker,
            sort_keys=['created_at', 'uuid'], sort_dirs=['asc', 'asc'],
            read_deleted='yes', limit_s=cell_calls.LONG_S))
        yield from (
            dataclasses.replace(instances.observe(instance),
                                resources=_resources(instance))
            for instance in found if _is_known(instance))
        if len(found) < page:
            return
        marker = found[-1].uuid


def _is_known(instance):
    # The other half of a resize to another cell is the same server.
    return (not instance.hidden and instance.obj_attr_is_set('flavor')
            and instance.flavor is not None)


def _resources(instance):
    """As Nova has them of a flavor alone, without ports or devices."""
    spec = objects.RequestSpec(flavor=instance.flavor,
                               is_bfv=not instance.image_ref)
    return dict(utils.ResourceRequest.from_request_spec(
        spec).merged_resources())
