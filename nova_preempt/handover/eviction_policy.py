# SPDX-License-Identifier: Apache-2.0
"""Builds the core's eviction rules from [preemption] of the configuration.

The rules are in nova_preempt.core: eligibility, actions and notice_period.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from oslo_config import cfg
import stevedore

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt import plugins
from nova_preempt.conf import classes as conf_classes
from nova_preempt.conf.preemption import OPERATIONS
from nova_preempt.core import costs
from nova_preempt.core import eligibility
from nova_preempt.core import eviction_actions as core_actions
from nova_preempt.core import model
from nova_preempt.core import notice_period
from nova_preempt.core.reservation import drain_rules
from nova_preempt.core.reservation import leases
from nova_preempt.core.scheduling import preemption_policy
from nova_preempt.db import decisions

# The entry point of the plugin of classes of service.
_CLASSES = 'nova_preempt.classes', 'qos'


class ServerClasses(Protocol):
    """The promises of classes of service to servers.

    Implemented by a plugin, which may not be installed: see load_classes().
    """

    exact: bool

    def refresh(self) -> Collection[str]:
        """Refresh; return uuids of servers whose class has changed."""

    def class_of(self, uuid: str, by_flavor: str) -> str: ...

    def promises(self) -> preemption_policy.ClassPromises: ...


class PolicyBuilder:
    """Builds the core's Policy for each decision.

    :param options: [preemption] of the configuration
    :param decisions: a nova_preempt.db.Decisions
    :param notice_limit_s: the longest notice that requests can wait for, None
        for any
    :param promised: None if there are no classes of service
    """

    def __init__(self, options: cfg.ConfigOpts.GroupAttr,
                 decisions: db.Decisions, notice_limit_s: float | None = None,
                 promised: ServerClasses | None = None) -> None:
        self._promised = promised
        self._options = options
        self._decisions = decisions
        self._notice_limit_s = notice_limit_s
        self._costs = load_costs(options)
        # {server uuid: number of its earlier evictions}
        self._preemptions: Mapping[str, int] = {}

    def current(self) -> preemption_policy.Policy:
        """Return the current core.scheduling.preemption_policy.Policy.

        Call it once per decision, not per server: options are slow to read.
        """
        return get_policy(
            self._options, self._notice_limit_s, **self._costs,
            preemptions=self._preemptions,
            classes=self._promised.promises() if self._promised else None)

    def refresh(self) -> None:
        """Read how often each server was evicted before."""
        if self._options.repeat_cost_s:
            # The background is enough: no server returns so fast.
            self._preemptions = self._decisions.count_preemptions()


def get_policy(
    options: cfg.ConfigOpts.GroupAttr, notice_limit_s: float | None = None,
    **more: Any) -> preemption_policy.Policy:
    """Build the core's Policy, for the service and for simulations.

    :param options: [preemption] of the configuration
    :param notice_limit_s: see notice_rule()
    :param more: its costs, see load_costs(), and fields without an option
    """
    return preemption_policy.Policy(
        get_rules(options), tuple(options.actions), **more,
        notice=notice_rule(options, notice_limit_s),
        always=options.consider == 'always')


def load_costs(options: cfg.ConfigOpts.GroupAttr) -> dict[str, Any]:
    """Load the cost function, see nova_preempt.core.costs, and its options.

    :param options: [preemption] of the configuration
    :returns: fields of a Policy
    :raises InvalidConfiguration: there is no such function
    """
    return {'cost': plugins.load('nova_preempt.cost', options.cost,
                                 '[preemption]cost is'),
            'cost_options': costs.CostOptions(options.billing_period_s,
                                              options.repeat_cost_s)}


def get_terms(
    server: model.PreemptibleServer, options: cfg.ConfigOpts.GroupAttr,
    notice_limit_s: float | None = None) -> core_actions.EvictionTerms:
    """Return the core.eviction_actions.EvictionTerms of a server.

    :param options: [preemption] of the configuration
    :param notice_limit_s: see notice_rule()
    """
    return core_actions.terms_of(
        server, options.actions, notice_rule(options, notice_limit_s))


def one_time(servers: Iterable[model.PreemptibleServer]) -> list[str]:
    """Return the uuids of servers with devices that can be used once only."""
    return sorted(server.uuid for server in servers if server.one_time)


def make_victim(server: model.PreemptibleServer,
                options: cfg.ConfigOpts.GroupAttr, cost_us: int = 0,
                notice_limit_s: float | None = None) -> decisions.Victim:
    """Return the db.Victim of a preemptible server."""
    ends = get_terms(server, options, notice_limit_s)
    return decisions.Victim(
        server.uuid, server.project_id, server.user_id, server.flavor,
        cost_us, launched_at=server.launched_at.replace(tzinfo=None),
        action=core_actions.MIGRATE if ends.migrate else ends.action,
        notice_s=ends.notice_s, restore=ends.restore, last_resort=ends.action)


def notice_rule(options: cfg.ConfigOpts.GroupAttr, limit_s: float | None = None
                ) -> notice_period.NoticeRule:
    """Return the core.notice_period.NoticeRule of the configuration.

    :param options: [preemption] of the configuration
    :param limit_s: the longest notice to wait for, None for any
    """
    longest_s = options.maximum_notice_s
    return notice_period.NoticeRule(
        options.notice_s, options.minimum_notice_s,
        longest_s if limit_s is None else min(longest_s, limit_s))


def get_action(server: model.PreemptibleServer, actions: Sequence[str]) -> str:
    """Return the eviction action of a server: delete, shelve or stop.

    :param actions: [preemption]actions; passed in, for a decision calls this
        for all servers, and options are slow to read
    """
    return core_actions.choose(server.action, actions, pinned=server.pinned)


def get_rules(options: cfg.ConfigOpts.GroupAttr) -> eligibility.Rules:
    """Return the eligibility.Rules of the configuration.

    :param options: [preemption] of the configuration
    """
    return eligibility.Rules(options.honored_locks, options.minimum_runtime_s)


def why_not(server: model.PreemptibleServer,
            options: cfg.ConfigOpts.GroupAttr) -> str:
    """Return why a server cannot be evicted now, '' if it can.

    Ignores its run time, on which some evictions do not depend.
    """
    return why_kept(server, options) or get_rules(options).why_not(
        server, get_action(server, options.actions))


def why_kept(server: model.PreemptibleServer,
             options: cfg.ConfigOpts.GroupAttr) -> str:
    """Return why a server must be kept with its action, '' if it need not.

    See core.eviction_actions.why_kept().
    """
    return core_actions.why_kept(server, get_action(server, options.actions))


def vacating_action(server: model.PreemptibleServer,
                    options: cfg.ConfigOpts.GroupAttr) -> str:
    """Return the action that frees all of a server's allocations.

    See core.eviction_actions.vacating().
    """
    return core_actions.vacating(
        server, get_action(server, options.actions), server.vm_state)


def why_stays(server: model.PreemptibleServer,
              options: cfg.ConfigOpts.GroupAttr) -> str:
    """Return why a server must not be drained from its host, '' if it may.

    Ignores its guaranteed run time.
    """
    return drain_rules.why_stays(server, get_action(server, options.actions),
                                 get_rules(options))


def why_not_allowed(options: cfg.ConfigOpts.GroupAttr,
                    get_operation: Callable[[], str]) -> str:
    """Return why such a request may not preempt, '' if it may.

    :param options: [preemption] of the configuration
    :param get_operation: returns the one of OPERATIONS, called if that
        matters
    """
    if not options.enabled:
        return '[preemption]enabled is false'
    allowed = options.preempting_operations
    if set(allowed) >= set(OPERATIONS) or (
            allowed and get_operation() in allowed):
        return ''
    return ('[preemption]preempting_operations does not include the '
            'operation')


def get_guard(options: cfg.ConfigOpts.GroupAttr,
              guard_s: int) -> leases.GuardTime:
    """Return the core.reservation.leases.GuardTime of the configuration.

    :param options: [preemption] of the configuration
    :param guard_s: [reservation]guard_s
    """
    return leases.GuardTime(
        guard_s, notice_rule(options), get_rules(options),
        options.termination_timeout_s, _migrate_timeout_s(options))


def lead_s(notice_s: int, options: cfg.ConfigOpts.GroupAttr) -> int:
    """Return how long before its host is needed a server gets its notice.

    :param notice_s: the length of the notice, in seconds
    :param options: [preemption] of the configuration
    """
    return notice_period.lead_s(
        notice_s, options.termination_timeout_s, _migrate_timeout_s(options))


def _migrate_timeout_s(options: cfg.ConfigOpts.GroupAttr) -> int:
    return (options.migrate_timeout_s
            if core_actions.MIGRATE in options.actions else 0)


def load_classes(conf: cfg.ConfigOpts) -> Any:
    """Load the plugin of classes of service, None if they are off.

    It may not be installed, and is loaded only if [classes]enabled is true:
    see nova_preempt.classes.class_registry.

    :param conf: a ConfigOpts on which nova_preempt.conf is registered
    :raises InvalidConfiguration: it is not installed, or its options make no
        sense
    """
    if not conf[conf_classes.GROUP].enabled:
        return None
    if why := core_actions.why_no_classes(conf.preemption.actions):
        raise exceptions.InvalidConfiguration(why)
    try:
        return stevedore.DriverManager(
            *_CLASSES, on_load_failure_callback=_cannot_load,
            invoke_on_load=True, invoke_args=(conf,)).driver
    except (ImportError, stevedore.exception.NoMatches) as exc:
        raise exceptions.InvalidConfiguration(
            f'[{conf_classes.GROUP}]enabled is true, but its plugin is not '
            f'installed: {exc}') from exc
    except ValueError as exc:
        raise exceptions.InvalidConfiguration(str(exc)) from exc


def _cannot_load(_manager: object, _entry_point: object, exc: BaseException
                 ) -> NoReturn:
    raise exc
