# SPDX-License-Identifier: Apache-2.0
"""The rules for options that the scheduler and the engine check at start.

A rule is where its option is used. Those of the API are in api/entry.py, which
a WSGI server imports. "nova-preempt-status upgrade check" checks all of them.
"""

from nova_preempt import exceptions
from nova_preempt import headroom
from nova_preempt import rpc
from nova_preempt.backlog import batch
from nova_preempt.backlog import passes
from nova_preempt.backlog import sealing
from nova_preempt.cloud import nova_api
from nova_preempt.db import database
from nova_preempt.handover import eviction_policy
from nova_preempt.power import driver
from nova_preempt.power import errors
from nova_preempt.power import policies as power_policies
from nova_preempt.power import readings
from nova_preempt.reservation import leases
from nova_preempt.reservation import schedule
from nova_preempt.scheduler import deadline
from nova_preempt.scheduler import multi_create
from nova_preempt.scheduler import quotas


def _credentials(conf):
    # Without any it behaves as nova-scheduler.
    if nova_api.NovaAPI.is_configured(conf):
        nova_api.check(conf)


def _lease_service(conf):
    if leases.is_used(conf):
        leases.load_service(conf)


def _order(conf):
    found = eviction_policy.load_classes(conf)
    if conf.backlog.enabled:
        passes.load_order(conf.backlog, found and found.claims(None))


def _power(conf):
    options = conf.energy
    try:
        if options.enabled:
            driver.Drivers(conf)
            power_policies.load_forecast(options)
        if options.enabled or options.sources:
            readings.Readings(conf)
    except errors.HostsFileError as exc:
        raise exceptions.InvalidConfiguration(
            f'[energy]hosts_file: {exc}') from None


_SHARED = (
    database.check_url, rpc.check_transport,
    lambda conf: eviction_policy.load_costs(conf.preemption),
    lambda conf: headroom.parse(conf.preemption),
    eviction_policy.load_classes, _lease_service)
SCHEDULER = (
    *_SHARED, deadline.check, _credentials,
    lambda conf: quotas.check(conf.preemption_quota),
    lambda conf: multi_create.load(conf.preemption, None))
ENGINE = (
    *_SHARED, nova_api.check, sealing.check,
    lambda conf: schedule.load_ranking(conf.reservation.ranking), _order,
    lambda conf: batch.load(conf.backlog), _power)
