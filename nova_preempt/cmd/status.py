# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-status: checks whether the services can be started."""

# Before all other imports.
from nova_preempt.cmd import native_threads  # noqa: F401 isort: skip

import functools
import sys

from nova import context as nova_context
from nova import exception
from nova import objects
from nova import rpc
import nova.conf
from nova.db.api import api as api_db_api
from nova.db.main import api as main_db_api
from nova.scheduler import filters
from nova.scheduler import weights
from oslo_db import exception as db_exc
from oslo_upgradecheck import upgradecheck
from oslo_utils import importutils
import sqlalchemy.exc

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt import rpc as our_rpc
from nova_preempt.api import application_factory
from nova_preempt.api import policy
from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import nova_conf
from nova_preempt.cmd import rotate_keys
from nova_preempt.cmd import startup_option_rules
from nova_preempt.cmd import status_flavors
import nova_preempt.conf
from nova_preempt.conf import option_checks
from nova_preempt.core.reservation import reservation_model
from nova_preempt.db import reservable_hosts as reservable
from nova_preempt.db import reservations
from nova_preempt.db import schema_upgrade
from nova_preempt.exceptions import first_line
from nova_preempt.handover import eviction_policy
from nova_preempt.power import efficiency_cache
from nova_preempt.power import power_errors
from nova_preempt.reservation import lease_cache
from nova_preempt.reservation import reservation_scheduler
from nova_preempt.scheduler import request_deadline

CONF = nova.conf.CONF

FILTER = 'PreemptibleFilter'
WEIGHERS = ('PreemptionWeigher', 'PreemptionCostWeigher')

# The check of options reports what keeps a service from starting.
_SEE = 'See "Options".'

_DB_AWAY = (db_exc.DBError, db_exc.CantStartEngineError,
            sqlalchemy.exc.SQLAlchemyError, ImportError)


def _success(details=None):
    return upgradecheck.Result(upgradecheck.Code.SUCCESS, details)


def _warning(details):
    return upgradecheck.Result(upgradecheck.Code.WARNING, details)


def _failure(details):
    return upgradecheck.Result(upgradecheck.Code.FAILURE, details)


class UpgradeChecks(upgradecheck.UpgradeCommands):
    """Upgrade checks of configuration, database, flavors and services.

    A failure keeps the scheduler or the engine from working; a warning means
    degraded operation.

    :param conf: nova.conf.CONF
    """

    def __init__(self, conf):
        super().__init__()
        self._conf = conf

    def _check_options(self):
        if not nova_conf.is_there(self._conf):
            return _failure(nova_conf.MISSING)
        faults = option_checks.find_faults(self._conf, (
            *startup_option_rules.SCHEDULER, *startup_option_rules.ENGINE,
            *application_factory.RULES))
        return _failure('; '.join(faults)) if faults else None

    def _check_database(self):
        try:
            database = db.Database(self._conf)
            revision = schema_upgrade.get_revision(database)
            if revision is None and database.is_sqlite:
                return _success('The scheduler creates the tables.')
            schema_upgrade.check(database)
        except schema_upgrade.WrongTables as exc:
            return _failure(str(exc))
        except _DB_AWAY as exc:
            return _failure('[preemption_database]connection cannot be '
                            f'opened: {first_line(exc)}')

    def _check_schedulers(self):
        if not self._conf.preemption_database.connection.startswith('sqlite'):
            return None
        hosts = _scheduler_hosts()
        if len(hosts) < 2:
            return None
        return _warning(
            f'{len(hosts)} hosts have a scheduler ({", ".join(sorted(hosts))})'
            ', but [preemption_database]connection is a SQLite file of one '
            'host; set a MariaDB, MySQL or PostgreSQL database.')

    def _check_flavors(self):
        faults = [f'{name} of flavor {flavor} {fault}'
                  for flavor, specs in sorted(_flavors())
                  for name, value in sorted(specs.items())
                  if (fault := status_flavors.fault(name, value))]
        return _warning(status_flavors.joined(faults)) if faults else None

    def _check_classes(self):
        try:
            found = eviction_policy.load_classes(self._conf)
        except exceptions.InvalidConfiguration:
            return _success(_SEE)
        if found is None:
            return _success('[classes]enabled is false: no availability is '
                            'promised.')
        table = found.table
        faults = [
            f'safety_margin_s of class {name} is below the pass period, '
            f'{table.pass_period_s} s, so that the engine acts too late to '
            'keep the promise' for name in table.hasty
        ] + status_flavors.class_faults(_flavors(), table.names)
        return _warning(status_flavors.joined(faults)) if faults else None

    def _check_secrets(self):
        return rotate_keys.check(self._conf, _DB_AWAY)

    def _check_figures(self):
        options = self._conf.energy
        try:
            if options.figures_file:
                efficiency_cache.load_file(options.figures_file)
        except power_errors.HostsFileError as exc:
            return _warning('[energy]figures_file cannot be used: '
                            f'{first_line(exc)}')

    def _check_power(self):
        options = self._conf.energy
        if not options.enabled:
            return _success('[energy]enabled is false: no host is powered '
                            'off.')
        if options.demand_wakes and (
                options.demand_wait_s >= self._conf.long_rpc_timeout):
            return _warning(
                f'[energy]demand_wait_s is {options.demand_wait_s} s, not '
                'below [DEFAULT]long_rpc_timeout, '
                f'{self._conf.long_rpc_timeout} s: waits end before it.')
        return None

    def _check_filter(self):
        options = self._conf.filter_scheduler
        try:
            available = _names(filters.HostFilterHandler(),
                               options.available_filters)
        except (ImportError, exception.ClassNotFound):
            return _cannot_load('available_filters', options.available_filters)
        if FILTER not in options.enabled_filters:
            return _warning(f'{FILTER} is not in '
                            '[filter_scheduler]enabled_filters.')
        if FILTER not in available:
            return _failure('nova_preempt.scheduler.filters.all_filters is '
                            'not in [filter_scheduler]available_filters.')
        return None

    def _check_weighers(self):
        names = self._conf.filter_scheduler.weight_classes
        try:
            found = _names(weights.HostWeightHandler(), names)
        except (ImportError, exception.ClassNotFound):
            return _cannot_load('weight_classes', names)
        missing = [name for name in WEIGHERS if name not in found]
        if missing:
            return _warning(
                f'{", ".join(missing)} not found: nova_preempt.scheduler.'
                'weights.all_weighers is not in '
                '[filter_scheduler]weight_classes.')
        return None

    def _check_threads(self):
        options = self._conf.preemption
        threads = request_deadline.get_threads(self._conf)
        if options.max_waiting_requests >= threads:
            return _warning(
                '[preemption]max_waiting_requests is '
                f'{options.max_waiting_requests}, not below [DEFAULT]'
                f'executor_thread_pool_size, {threads}.')
        waiting, threads = request_deadline.get_waiting_limits(self._conf)
        if waiting >= threads:
            return _warning(
                '[preemption]max_waiting_requests lets up to '
                f'{waiting} requests wait in the schedulers of this host; '
                f'its conductors have only {threads} threads.')
        return None

    def _check_leases(self):
        if not lease_cache.is_used(self._conf):
            return _success('ReservationFilter is not in [filter_scheduler]'
                            'enabled_filters: no host is kept reserved.')
        try:
            lease_cache.load_service(self._conf).fetch()
        except exceptions.InvalidConfiguration:
            return _success(_SEE)
        except Exception as exc:  # noqa: BLE001 (whatever a plugin raises)
            return _warning('[reservation]lease_service does not answer: '
                            f'{first_line(exc)}')

    def _check_reservations(self):
        options = self._conf.reservation
        if options.lease_service != 'native':
            return None
        try:
            database = db.Database(self._conf)
            schema_upgrade.check(database)
            found = reservations.Reservations(database).list(
                statuses=reservation_model.OPEN)
            settings = reservable.get_hosts(database)
        except (schema_upgrade.WrongTables, *_DB_AWAY) as exc:
            # The check of the database reports it.
            return _success('The reservations cannot be read: '
                            f'{first_line(exc)}')
        if not options.enabled:
            waiting = sum(item.ready_at is None for item in found)
            if not waiting:
                return _success('[reservation]enabled is false: users cannot '
                                'reserve hosts.')
            return _warning(
                f'{waiting} granted reservations do not start: '
                '[reservation]enabled is false. Set it to true for the API, '
                'the engine and the schedulers, or cancel them.')
        return _result_of_reservations(
            self._conf, sum(item.reservable is True
                            for item in settings.values()))

    @property
    def _upgrade_checks(self):
        first = ('Options',
                 functools.partial(_run, UpgradeChecks._check_options)),
        if not nova_conf.is_there(self._conf) or option_checks.find_faults(
                self._conf, (our_rpc.check_transport,)):
            # The other checks would fail for the same reason.
            return first
        return first + tuple(
            (name, functools.partial(_run, check))
            for name, check in self._others)

    _others = (
        ('Database', _check_database),
        ('Database of several schedulers', _check_schedulers),
        ('Extra specs of flavors', _check_flavors),
        ('Classes', _check_classes),
        ('Secrets of requests', _check_secrets),
        ('Figures of hosts', _check_figures),
        ('Power of hosts', _check_power),
        ('Filter', _check_filter),
        ('Weighers', _check_weighers),
        ('Requests that wait', _check_threads),
        ('Lease service', _check_leases),
        ('Reservations', _check_reservations),
    )


def _run(check, checks):
    """Run a check; None stands for success."""
    try:
        return check(checks) or _success()
    except (*_DB_AWAY, exception.NovaException) as exc:
        return _warning('The check failed, since Nova\'s database cannot be '
                        f'read: {first_line(exc)}')


def _result_of_reservations(conf, reservable_hosts):
    """Return the reservation policy, a warning if without limits."""
    options = conf.reservation
    rule = policy.RESERVATION_CREATE
    hosts = (f'{reservable_hosts} hosts' if not options.reservable_default
             else 'every host that is not excluded')
    text = (f'Users who pass the policy {rule} '
            f'({policy.check_string(conf, rule)}) may reserve {hosts}: '
            + ', '.join(f'{name} {options[name]}'
                        for name in reservation_scheduler.LIMITS)
            + '. A reservation evicts preemptible servers of other projects '
            'and migrates their normal servers.')
    unlimited = [name for name in reservation_scheduler.LIMITS
                 if options[name] < 0]
    if options.reservable_default:
        return _warning(f'{text} [reservation]reservable_default is true.')
    if unlimited:
        return _warning(f'{text} No limit is set for {", ".join(unlimited)}.')
    return _success(text)


def _cannot_load(option, names):
    return _failure(f'[filter_scheduler]{option} names a class that cannot '
                    f'be loaded: {", ".join(names)}.')


def _names(handler, class_names):
    return {cls.__name__ for cls in handler.get_matching_classes(class_names)}


@functools.cache
def _context():
    """Return a context with which Nova's databases can be read."""
    profiler = importutils.try_import('osprofiler.opts')
    if profiler:
        # As nova.config does, which would parse the command line: Nova's
        # databases read the options of osprofiler if it is installed.
        profiler.set_defaults(CONF)
    rpc.init(CONF)  # registers options needed to read cells
    main_db_api.configure(CONF)
    api_db_api.configure(CONF)
    objects.register_all()
    return nova_context.get_admin_context()


def _flavors():
    """Return [(name, extra specs)] of all flavors."""
    context = _context()  # registers objects.FlavorList
    return [(flavor.name, flavor.extra_specs)
            for flavor in objects.FlavorList.get_all(
                context, filters={'is_public': None})]


def _scheduler_hosts():
    """Return the hosts of nova-scheduler in Nova's service table.

    The table is in the database that [database]connection of the schedulers
    names, which is that of cell0 or of a cell.
    """
    context = _context()
    return {service.host for cell in objects.CellMappingList.get_all(context)
            for service in cell_calls.call(
                cell, objects.ServiceList.get_by_binary, 'nova-scheduler')}


def main(argv=None):
    nova_preempt.conf.register_opts(CONF)
    try:
        return upgradecheck.main(CONF, 'nova', UpgradeChecks(CONF),
                                 sys.argv[1:] if argv is None else argv)
    except nova_conf.BAD as exc:
        print(f'nova-preempt-status: {nova_conf.describe(exc)}',
              file=sys.stderr)
        return upgradecheck.Code.FAILURE


if __name__ == '__main__':
    sys.exit(main())
