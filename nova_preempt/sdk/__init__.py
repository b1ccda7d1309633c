# SPDX-License-Identifier: Apache-2.0
"""The Preemption API as a service of openstacksdk, "conn.preemption".

Needs openstacksdk, and nothing else of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openstack import service_description

from nova_preempt.sdk.v1 import _proxy

if TYPE_CHECKING:
    from openstack.connection import Connection


class PreemptionService(
        # Not generic in older releases of openstacksdk.
        service_description.ServiceDescription  # type: ignore[type-arg]
        ):
    """Describes the Preemption API to openstacksdk."""

    supported_versions = {'1': _proxy.Proxy}


#: For add_service() of a Connection.
SERVICE = PreemptionService(service_type='preemption')


def add_to(connection: Connection) -> Connection:
    """Add the service to an openstack.connection.Connection.

    "nova_preempt.sdk:add_to" is a vendor_hook, in clouds.yaml or of
    openstack.connect().

    :returns: the connection, whose attribute "preemption" is a v1 Proxy
    """
    connection.add_service(SERVICE)
    return connection
