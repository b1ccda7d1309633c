# SPDX-License-Identifier: Apache-2.0
"""Rules for options that the scheduler and the engine check at start.

Each rule is defined where its option is used. The rules of the API are in
api/application_factory.py, which a WSGI server imports. "nova-preempt-status
upgrade check" checks all rules.
"""

from nova_preempt import exceptions
from nova_preempt import headroom
from nova_preempt import rpc
from nova_preempt.backlog import batch_planners
from nova_preempt.backlog import cloud_observer
from nova_preempt.backlog import secret_encryption
from nova_preempt.cloud import nova_api
from nova_preempt.db import connection
from nova_preempt.handover import eviction_policy
from nova_preempt.power import driver
from nova_preempt.power import energy_options
from nova_preempt.power import power_errors
from nova_preempt.power import power_readings
from nova_preempt.reservation import lease_cache
from nova_preempt.reservation import reservation_scheduler
from nova_preempt.scheduler import multi_create_decision
from nova_preempt.scheduler import preemption_quotas
from nova_preempt.scheduler import request_deadline


def _credentials(conf):
    # Without credentials the scheduler behaves as nova-scheduler.
    if nova_api.NovaAPI.is_configured(conf):
        nova_api.check(conf)


def _lease_service(conf):
    if lease_cache.is_used(conf):
        lease_cache.load_service(conf)


def _order(conf):
    found = eviction_policy.load_classes(conf)
    if conf.backlog.enabled:
        cloud_observer.load_order(conf.backlog, found and found.claims(None))


def _power(conf):
    options = conf.energy
    try:
        if options.enabled:
            driver.Drivers(conf)
            energy_options.load_forecast(options)
        if options.enabled or options.sources:
            power_readings.PowerReader(conf)
    except power_errors.HostsFileError as exc:
        raise exceptions.InvalidConfiguration(
            f'[energy]hosts_file: {exc}') from None


_SHARED = (
    connection.check_url, rpc.check_transport,
    lambda conf: eviction_policy.load_costs(conf.preemption),
    lambda conf: headroom.parse(conf.preemption),
    eviction_policy.load_classes, _lease_service)
SCHEDULER = (
    *_SHARED, request_deadline.check, _credentials,
    lambda conf: preemption_quotas.check(conf.preemption_quota),
    lambda conf: multi_create_decision.load(conf.preemption, None))
ENGINE = (
    *_SHARED, nova_api.check, secret_encryption.check,
    lambda conf: reservation_scheduler.load_ranking(conf.reservation.ranking),
    _order, lambda conf: batch_planners.load(conf.backlog), _power)
