# SPDX-License-Identifier: Apache-2.0
"""Nova's fake hypervisor, made persistent.

Nova's own loses its identity and servers when nova-compute restarts; it is
meant for tests without restarts.
"""

from nova import context
from nova import objects
from nova.virt import fake
from nova.virt import node


class Hypervisor(fake.MediumFakeDriver):
    """10 VCPU, 8192 MB, 1028 GB; servers survive a restart of nova-compute.

    :ivar instances: as the base class has it
    """

    def init_host(self, host):
        super().init_host(host)
        for instance in objects.InstanceList.get_by_host(
                context.get_admin_context(), host, expected_attrs=[]):
            self.instances[instance.uuid] = fake.FakeInstance(
                instance.name, instance.power_state, instance.uuid)

    def get_nodenames_by_uuid(self, refresh=False):
        return {node.get_local_node_uuid(): name
                for name in self.get_available_nodes()}

    def get_available_resource(self, nodename):
        return {**super().get_available_resource(nodename),
                'uuid': node.get_local_node_uuid()}
