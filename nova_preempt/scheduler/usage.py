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
"""What a project has: its servers, and its requests for servers."""

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.compute import vm_states
from oslo_log import log as logging

from nova_preempt.cloud import extra_specs as specs
from nova_preempt.core import quotas

LOG = logging.getLogger(__name__)


class ProjectServers:
    """Reads Nova's records of the servers of a project.

    :param get_cells: returns {uuid: CellMapping}, without cell0: what is
        there was never placed
    :param hinted: given uuids, returns the set of those that are preemptible
        by a hint
    """

    def __init__(self, get_cells, hinted):
        self._get_cells = get_cells
        self._hinted = hinted

    def servers(self, project_id, partial=False):
        """{uuid: the core's CountedServer} of those in cells.

        :param partial: whether to do without cells that cannot be read
        :raises CellTimeout: a cell cannot be read
        """
        instances = []
        for uuid, found in self._read(project_id).items():
            if not nova_context.is_cell_failure_sentinel(found):
                instances.extend(found)
            elif partial:
                LOG.warning('Cannot read the servers of cell %s; they do not '
                            'count for now.', uuid)
            else:
                raise exception.CellTimeout
        hinted = self._hinted([instance.uuid for instance in instances])
        return {instance.uuid: _server(instance, instance.uuid in hinted)
                for instance in instances
                # A server that was never placed, and will not be.
                if instance.host or instance.vm_state != vm_states.ERROR}

    def _read(self, project_id):
        return nova_context.scatter_gather_cells(
            nova_context.get_admin_context(),
            list(self._get_cells().values()), nova_context.CELL_TIMEOUT,
            objects.InstanceList.get_by_filters,
            {'project_id': project_id, 'deleted': False},
            expected_attrs=['flavor'])

    @staticmethod
    def requests(project_id):
        """The uuids of those that are in no cell yet, as a set."""
        # A context that is not an admin's: of this project only.
        context = nova_context.RequestContext(project_id=project_id,
                                              is_admin=False)
        return {item.instance_uuid
                for item in objects.BuildRequestList.get_all(context)}


def _server(instance, by_hint):
    # While a resize is not confirmed there are two, either of which may stay.
    flavors = [flavor for flavor in (
        instance.flavor, instance.new_flavor, instance.old_flavor)
        if flavor is not None]
    return quotas.CountedServer(
        [_amounts(flavor, by_hint) for flavor in flavors],
        instance.task_state is not None)


def _amounts(flavor, by_hint):
    extra_specs = (flavor.extra_specs if 'extra_specs' in flavor
                   else None) or {}
    return quotas.Amounts(
        by_hint or specs.flavor_is_preemptible(extra_specs),
        flavor.vcpus, flavor.memory_mb)
