# SPDX-License-Identifier: Apache-2.0
"""Commands under further names: those of earlier releases, and without clash.

They are entry points of openstack.extension, and deprecated: neither the help
nor the guide lists them. "preemption host" stands for "reservation host",
which Blazar's plugin has, too.
"""

from nova_preempt.client import backlog_commands
from nova_preempt.client import energy_commands
from nova_preempt.client import preemption_commands
from nova_preempt.client import reservable_host_commands


def _hidden(command):
    return type(command.__name__, (command,), {
        '__module__': __name__, '__doc__': command.__doc__,
        'deprecated': True})


BacklogRequestCancel = _hidden(backlog_commands.CancelRequests)
BacklogStats = _hidden(backlog_commands.ShowStatistics)
EnergyFiguresSet = _hidden(energy_commands.SetHostEfficiency)
EnergyFiguresUnset = _hidden(energy_commands.UnsetHostEfficiency)
EnergyHosts = _hidden(energy_commands.ListHosts)
PreemptionChance = _hidden(preemption_commands.ShowCapacityByFlavor)
PreemptionHostList = _hidden(reservable_host_commands.ListHosts)
PreemptionHostSet = _hidden(reservable_host_commands.SetHost)
PreemptionHostShow = _hidden(reservable_host_commands.ShowHost)
PreemptionStats = _hidden(preemption_commands.ShowStatistics)
