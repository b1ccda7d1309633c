# SPDX-License-Identifier: Apache-2.0
"""Small simulated clouds and their events."""

import dataclasses

from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core.model import SECOND, Inventory
from nova_preempt.core.notice_period import NoticeRule
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.simulator import delays
from nova_preempt.simulator import simulation as run
from nova_preempt.simulator import simulation_settings
from nova_preempt.simulator.traces import trace_model

#: Whole seconds, so that times are easy to tell.
DELAYS = delays.Delays(**{
    name: delays.Delay(f'constant:{seconds}') for name, seconds in (
        ('boot', 10), ('delete', 2), ('shelve', 5), ('stop', 3),
        ('unshelve', 20))})


def options(**values):
    """Return options of an operator; those of the Policy go there."""
    fields = {field.name
              for field in dataclasses.fields(preemption_policy.Policy)}
    of_policy = {name: values.pop(name) for name in list(values)
                 if name in fields}
    return simulation_settings.Options(preemption_policy.Policy(**{
        'rules': eligibility.Rules(), 'actions': ('delete', 'shelve', 'stop'),
        'cost': costs.partial_hour, 'notice': NoticeRule(30), **of_policy}),
        **values)


def cloud(hosts=1, vcpus=4, terms=None, **values):
    """A CloudSetting of equal hosts, and a class that is preemptible."""
    return simulation_settings.CloudSetting(
        (simulation_settings.HostKind('h', hosts, {
            'VCPU': Inventory(vcpus), 'MEMORY_MB': Inventory(1024 * vcpus),
            'DISK_GB': Inventory(100)}),),
        **{'classes': {'preemptible': terms
                       or simulation_settings.PreemptibleTerms()},
           'delays': DELAYS, **values})


def boot(at_s, id, vcpus=1, spot=False, for_s=None, **values):
    return trace_model.Boot(
        at_s * SECOND, id, {'VCPU': vcpus, 'MEMORY_MB': 1024 * vcpus}, '',
        'preemptible' if spot else 'normal',
        None if for_s is None else for_s * SECOND, **values)


def end(at_s, id):
    return trace_model.End(at_s * SECOND, id)


def simulated(setup, policy, *trace, until_s=10_000, seed=0):
    """Return (events, summary, Simulation).

    What has happened: 'T EVENT ID', of each event but being asked.
    """
    records = []
    simulation = run.Simulation(setup, policy, seed, records.append)
    summary = simulation.run(trace, until_s * SECOND)
    return [f'{item["t"]:g} {item["event"]} {item["id"]}' for item in records
            if item['event'] != 'asked'], summary, simulation
