# SPDX-License-Identifier: Apache-2.0
"""Builds the options of a simulation from nova.conf."""

import functools

from nova.conf import rpc
from oslo_config import cfg

from nova_preempt import exceptions
from nova_preempt.backlog import backlog_options_from_conf
from nova_preempt.backlog import cloud_observer
from nova_preempt.conf import backlog
from nova_preempt.conf import classes
from nova_preempt.conf import energy
from nova_preempt.conf import engine_tasks
from nova_preempt.conf import opts as all_opts
from nova_preempt.conf import preemption
from nova_preempt.conf import reservation
from nova_preempt.core import eviction_actions
from nova_preempt.core import headroom_account
from nova_preempt.core.batch import solver_choice
from nova_preempt.core.reservation import reservation_limits
from nova_preempt.handover import eviction_policy
from nova_preempt.power import energy_options
from nova_preempt.reservation import reservation_scheduler
from nova_preempt.scheduler import request_deadline
from nova_preempt.simulator import simulated_classes
from nova_preempt.simulator import simulation_settings

#: {group: its simulated options}, without credentials, which would be
#: required, and drivers of [energy].
_OPTS = {
    preemption.GROUP: preemption.DECISION_OPTS,
    engine_tasks.GROUP: engine_tasks.OPTS, backlog.GROUP: backlog.OPTS,
    classes.GROUP: classes.OPTS, reservation.GROUP: reservation.OPTS,
    energy.GROUP: energy.CONTROL_OPTS}
#: Members of simulation_settings.Options named as their option.
_SAME_NAMES = (
    (preemption.GROUP, (
        'maximum_runtime_s', 'termination_timeout_s', 'stop_retention_s',
        'project_budget', 'group_budget', 'budget_window_s')),
    (engine_tasks.GROUP,
     ('interval_s', 'restore_at_once', 'restore_timeout_s')))


class PolicyError(Exception):
    """A policy file is invalid; the message says why."""


def read_policy(path, workers):
    """Return (the simulator's Options, names of options not simulated).

    :param path: of a file such as nova.conf, None for the defaults
    :param workers: number of workers of all schedulers
    :raises PolicyError: the file is invalid
    """
    conf = cfg.ConfigOpts()
    conf.register_opts(rpc.rpc_opts)
    for group, opts in _OPTS.items():
        conf.register_opts(opts, group=group)
    try:
        conf([] if path is None else ['--config-file', path],
             project='nova', default_config_files=[], default_config_dirs=[])
        unknown = [] if path is None else _unknown(path)
        return _options(conf, workers), [*_left_out(conf), *unknown]
    except (cfg.Error, ValueError, solver_choice.NotInstalled,
            exceptions.InvalidConfiguration) as exc:
        raise PolicyError(f'{path or "options"}: {exc}') from None


def _unknown(path):
    """Return unknown options in our groups, which may be misspelt."""
    found = _parse(path)
    return [f'[{group}]{name}, an unknown option'
            for group, opts in all_opts.list_opts() if group in _OPTS
            for name in sorted(found.get(group, {}))
            if name.replace('-', '_') not in {opt.dest for opt in opts}]


def given(path):
    """Return {name: value} of the simulated options that a file sets.

    Credentials are not among them.
    """
    return {f'[{group}]{name}': ', '.join(values)
            for group, options in (_parse(path) if path else {}).items()
            for name, values in options.items() if name.replace('-', '_') in {
                opt.dest for opt in _OPTS.get(group, ())}}


def _parse(path):
    found = {}
    cfg.ConfigParser(path, found).parse()
    return found


def _options(conf, workers):
    ours = conf[preemption.GROUP]
    promised = _classes(conf[classes.GROUP], ours.actions)
    # Each value is read once: reading from oslo.config is slow.
    return simulation_settings.Options(
        eviction_policy.get_policy(
            ours, request_deadline.make_times(conf).notice_limit_s,
            **eviction_policy.load_costs(ours)),
        enabled=ours.enabled and 'create' in ours.preempting_operations,
        max_waiting_requests=ours.max_waiting_requests * workers,
        headroom=_headroom(ours.headroom),
        backlog=_backlog(conf[backlog.GROUP], promised),
        classes=promised, may_unshelve=ours.enabled
        and 'unshelve' in ours.preempting_operations, may_migrate=ours.enabled
        and 'live_migrate' in ours.preempting_operations,
        reservations=_reservations(conf[reservation.GROUP], ours),
        power=_power(conf[energy.GROUP]),
        **{name: conf[group][name] for group, names in _SAME_NAMES
           for name in names})


def _headroom(text):
    try:
        return headroom_account.parse(text)
    except ValueError as exc:
        raise PolicyError(f'[preemption]headroom: {exc}') from None


def _classes(ours, allowed):
    """Return the options of [classes], None if they are off."""
    if not ours.enabled:
        return None
    try:
        found = simulated_classes.parse(
            ours.qos_class or (), ours.pass_period_s)
    except ValueError as exc:
        raise PolicyError(f'[{classes.GROUP}]qos_class: {exc}') from None
    if why := eviction_actions.why_no_classes(allowed):
        raise PolicyError(why)
    return found


def _backlog(ours, promised):
    """Return the options of [backlog], None if it is off."""
    if not ours.enabled:
        return None
    placing = backlog_options_from_conf.batch_options(ours)
    planner = None
    if placing is not None:
        placer = solver_choice.make(placing)
        # It imports numpy: solver_choice.make() fails first if it is missing.
        from nova_preempt.core.batch import backlog_batch

        # Not a lambda, which cannot be pickled for other processes.
        planner = backlog_batch.Planner(functools.partial(_always, placer))
    return simulation_settings.BacklogOptions(
        cloud_observer.load_order(ours, promised and promised.claims),
        backlog_options_from_conf.controller_options(ours), planner)


def _always(value):
    return value


def _reservations(ours, preempting):
    """Return the options of [reservation], None if it is off."""
    if not ours.enabled:
        return None
    return simulation_settings.ReservationOptions(
        eviction_policy.get_guard(preempting, ours.guard_s),
        preempting.maximum_notice_s, ours.evacuation_lead_s, ours.end_action,
        reservation_scheduler.load_ranking(ours.ranking),
        ours.reservable_default,
        {name: ours[name] for name in reservation_limits.LIMITS})


def _power(ours):
    """Return the options of [energy], None if it is off."""
    if not ours.enabled:
        return None
    return energy_options.get_options(ours, energy_options.load_forecast(ours))


def _left_out(conf):
    """Return the names of set options that are not simulated."""
    reserving = conf[reservation.GROUP]
    power = conf[energy.GROUP]
    return [name for name, is_set in (
        ('migrate in [preemption]actions',
         'migrate' in conf[preemption.GROUP].actions),
        ('[backlog]ladders',
         conf[backlog.GROUP].enabled and conf[backlog.GROUP].ladders),
        ('[reservation]lease_service',
         reserving.enabled and reserving.lease_service != 'native'),
        ('[energy]minimum_hosts_per_aggregate',
         power.enabled and power.minimum_hosts_per_aggregate)) if is_set]
