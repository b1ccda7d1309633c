# SPDX-License-Identifier: Apache-2.0
"""Clients of the Preemption API."""

from nova_preempt_tempest_plugin.services import energy_client
from nova_preempt_tempest_plugin.services import preemption_client
from nova_preempt_tempest_plugin.services import reservation_client

EnergyClient = energy_client.EnergyClient
PreemptionClient = preemption_client.PreemptionClient
ReservationClient = reservation_client.ReservationClient

__all__ = ('EnergyClient', 'PreemptionClient', 'ReservationClient')
