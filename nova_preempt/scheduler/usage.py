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
from nova import objects
from nova.compute import vm_states
from oslo_log import log as logging

from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import extra_specs as specs
from nova_preempt.core import quotas

LOG = logging.getLogger(__name__)


class ProjectServers:
    """Reads Nova's records of the servers of a project.

    :param get_cells: returns {uuid: CellMapping}, without cell0: what is
        there was never placed
    :param hinted: given uuids, returns the set of those that are preemptible
        by a hint
    :param remembered: given a project and uuids of cells, returns the
        model.Servers that were seen there last: the preemptible ones
    """

    def __init__(self, get_cells, hinted, remembered):
        self._get_cells = get_cells
        self._hinted = hinted
        self._remembered = remembered

    def servers(self, project_id):
        """{uuid: the core's CountedServer} of those in cells.

        In a cell that cannot be read no server begins, so what is remembered
        of it is as good as a reading. Normal servers are not remembered: as
        with Nova's own quota, those of such a cell do not count.
        """
        instances, away = [], set()
        for uuid, found in cell_calls.gather(
                self._get_cells().values(),
                objects.InstanceList.get_by_filters,
                {'project_id': project_id, 'deleted': False},
                expected_attrs=['flavor']).items():
            if isinstance(found, Exception):
                LOG.warning('Cannot read the servers of cell %(cell)s: '
                            '%(exc)s. For quotas the preemptible ones that '
                            'were seen last count, and no normal ones.',
                            {'cell': uuid, 'exc': found})
                away.add(uuid)
            else:
                instances.extend(found)
        counted = {server.uuid: quotas.CountedServer(
            [quotas.Amounts(True, server.vcpus, server.memory_mb)],
            server.task_state is not None)
            for server in (self._remembered(project_id, away) if away
                           else ())}
        hinted = self._hinted([instance.uuid for instance in instances])
        return counted | {
            instance.uuid: _server(instance, instance.uuid in hinted)
            for instance in instances
            # A server that was never placed, and will not be.
            if instance.host or instance.vm_state != vm_states.ERROR}

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
