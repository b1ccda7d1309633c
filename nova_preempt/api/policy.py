# SPDX-License-Identifier: Apache-2.0
"""Rules of oslo.policy: which role may call which operation.

The rules are read from the same file as Nova's, [oslo_policy]policy_file of
nova.conf, so all of them begin with "preemption".
"""

from oslo_policy import policy
import webob.exc

from nova_preempt.cloud import nova_conf

ADMIN = 'rule:preemption_admin'
READER = 'rule:preemption_project_reader'
#: For services that report figures, with a credential on compute hosts.
REPORTER = 'rule:preemption_admin or role:service'
MEMBER = 'rule:preemption_project_member'
#: For requests that start servers in the name of their user.
OWNER = 'rule:preemption_owner'

LIST = 'preemption:list'
SHOW = 'preemption:show'
ALL_PROJECTS = 'preemption:all_projects'
BACKLOG_ALL_PROJECTS = 'preemption:request:all_projects'
BACKLOG_ANY_CLASS = 'preemption:request:any_class'
BACKLOG_CREATE = 'preemption:request:create'
BACKLOG_DELETE = 'preemption:request:delete'
BACKLOG_DETAILS = 'preemption:request:details'
BACKLOG_LIST = 'preemption:request:list'
BACKLOG_PLAN = 'preemption:request:plan'
BACKLOG_SHOW = 'preemption:request:show'
BACKLOG_STATISTICS = 'preemption:request:statistics'
BACKLOG_UPDATE = 'preemption:request:update'
EVICTION_RATES = 'preemption:eviction_rates'
EXPLAIN = 'preemption:explain'
EXPLAIN_DETAILS = 'preemption:explain:details'
HOST_LIST = 'preemption:host:list'
HOST_SHOW = 'preemption:host:show'
HOST_UPDATE = 'preemption:host:update'
LIMITS_SHOW = 'preemption:reservation_limits:show'
LIMITS_SHOW_ALL = 'preemption:reservation_limits:show:all_projects'
LIMITS_UPDATE = 'preemption:reservation_limits:update'
PROPERTY_LIST = 'preemption:property:list'
PROPERTY_UPDATE = 'preemption:property:update'
RESERVATION_ALL_PROJECTS = 'preemption:reservation:all_projects'
RESERVATION_CREATE = 'preemption:reservation:create'
RESERVATION_DETAILS = 'preemption:reservation:details'
RESERVATION_DELETE = 'preemption:reservation:delete'
RESERVATION_LIST = 'preemption:reservation:list'
RESERVATION_PREVIEW = 'preemption:reservation:preview'
RESERVATION_SHOW = 'preemption:reservation:show'
RESERVATION_UPDATE = 'preemption:reservation:update'
SIMULATE = 'preemption:simulate'
SIMULATE_ALL_PROJECTS = 'preemption:simulate:all_projects'
CHANCES = 'preemption:placement_chances'
CLASS_LIST = 'preemption:class:list'
ENERGY = 'preemption:energy'
ENERGY_FIGURES = 'preemption:energy:figures'
ENERGY_RETRY = 'preemption:energy:retry'
STATISTICS = 'preemption:statistics'
STATUS = 'preemption:status'
PAUSE = 'preemption:pause'
PAUSE_LIST = 'preemption:pause:list'
WEBHOOK_DELETE = 'preemption:webhook:delete'
WEBHOOK_SHOW = 'preemption:webhook:show'
WEBHOOK_UPDATE = 'preemption:webhook:update'

_RESERVATION = '/v1/reservations/{reservation_id}'
_LIMITS = '/v1/reservation-limits/{project_id}'
_REQUEST = '/v1/requests/{request_id}'
_WEBHOOK = '/v1/webhooks/{project_id}'

_BASE = [
    policy.RuleDefault('preemption_admin', 'role:admin',
                       description='Administrators, who may do everything.'),
    policy.RuleDefault(
        'preemption_project_reader',
        '(role:reader and project_id:%(project_id)s) or '
        'rule:preemption_admin',
        description='Readers of the project.'),
    policy.RuleDefault(
        'preemption_project_member',
        '(role:member and project_id:%(project_id)s) or '
        'rule:preemption_admin',
        description='Members of the project.'),
    policy.RuleDefault(
        'preemption_owner', '(role:member and project_id:%(project_id)s and '
        'user_id:%(user_id)s) or rule:preemption_admin',
        description='The user who created a request, and administrators.'),
]


def _rule(name, check, description, method, path):
    return policy.DocumentedRuleDefault(
        name=name, check_str=check, description=description,
        scope_types=['project'], operations=[{'method': method, 'path': path}])


_DOCUMENTED = [
    _rule(LIST, READER, 'List the preemptions that concern the project.',
          'GET', '/v1/preemptions'),
    _rule(SHOW, READER, 'Show a preemption that concerns the project.',
          'GET', '/v1/preemptions/{preemption_id}'),
    _rule(ALL_PROJECTS, ADMIN,
          'See preemptions and statistics of all projects, both sides of '
          'each, hosts and alternatives; list by host and project.',
          'GET', '/v1/preemptions'),
    _rule(EXPLAIN, MEMBER, 'Show whom a new server would preempt.',
          'POST', '/v1/explain'),
    _rule(EXPLAIN_DETAILS, ADMIN,
          'See hosts, costs and victims of all projects in the answer, and '
          'ask for one host.', 'POST', '/v1/explain'),
    _rule(SIMULATE, MEMBER,
          'Evict a preemptible server of the project, as in a preemption.',
          'POST', '/v1/simulate'),
    _rule(SIMULATE_ALL_PROJECTS, ADMIN,
          'Evict a preemptible server of any project, as in a preemption.',
          'POST', '/v1/simulate'),
    _rule(CHANCES, READER, 'Show how many servers would find capacity.',
          'GET', '/v1/placement-chances'),
    _rule(ENERGY, ADMIN,
          'See power, speed and power states of hosts, and savings.',
          'GET', '/v1/energy'),
    _rule(ENERGY_FIGURES, REPORTER,
          'Set or delete the speed and power of a host, as the benchmark '
          'does.', 'PUT', '/v1/energy/hosts/{name}/figures'),
    _rule(ENERGY_RETRY, ADMIN, 'Retry the boot of a failed host.',
          'POST', '/v1/energy/hosts/{name}/retry'),
    _rule(STATISTICS, READER, 'See numbers of preemptions by flavor.',
          'GET', '/v1/statistics'),
    _rule(EVICTION_RATES, READER,
          'See how often servers of named flavors are evicted, as ranges. '
          'Numbers and all flavors need preemption:all_projects.',
          'GET', '/v1/eviction-rates'),
    _rule(STATUS, ADMIN,
          'See the leading engine, pauses, waiting requests and free space.',
          'GET', '/v1/status'),
    _rule(PAUSE_LIST, ADMIN, 'See what is paused, why, and who asked for it.',
          'GET', '/v1/pauses'),
    _rule(PAUSE, ADMIN,
          'Pause and resume preemption, reservations, power control or the '
          'backlog.', 'PUT', '/v1/pauses/{what}'),
    _rule(RESERVATION_LIST, READER, 'List reservations of the project.',
          'GET', '/v1/reservations'),
    _rule(RESERVATION_SHOW, READER, 'Show a reservation of the project.',
          'GET', _RESERVATION),
    _rule(RESERVATION_ALL_PROJECTS, ADMIN,
          'See, change and cancel reservations of all projects; list by host '
          'and project.', 'GET', '/v1/reservations'),
    _rule(RESERVATION_DETAILS, ADMIN,
          'See names of hosts, servers of other projects that are in the way, '
          'and when hosts are free, in reservations, previews and refusals.',
          'GET', '/v1/reservations'),
    _rule(RESERVATION_CREATE, MEMBER, 'Reserve hosts for the project.',
          'POST', '/v1/reservations'),
    _rule(RESERVATION_PREVIEW, MEMBER,
          'Ask when and where hosts could be reserved.',
          'POST', '/v1/reservations/preview'),
    _rule(RESERVATION_UPDATE, MEMBER, 'Change a reservation of the project.',
          'PATCH', _RESERVATION),
    _rule(RESERVATION_DELETE, MEMBER, 'Cancel a reservation of the project.',
          'DELETE', _RESERVATION),
    _rule(PROPERTY_LIST, READER,
          'List the properties of hosts that can be asked for.',
          'GET', '/v1/properties'),
    _rule(PROPERTY_UPDATE, ADMIN,
          'Hide a property of hosts from users; see and ask for those that '
          'are hidden.', 'PATCH', '/v1/properties/{name}'),
    _rule(HOST_LIST, ADMIN, 'List hosts and their reservations.',
          'GET', '/v1/hosts'),
    _rule(HOST_SHOW, ADMIN, 'Show a host and its reservations.',
          'GET', '/v1/hosts/{name}'),
    _rule(HOST_UPDATE, ADMIN,
          'Set whether a host can be reserved, and its extra properties.',
          'PATCH', '/v1/hosts/{name}'),
    _rule(LIMITS_SHOW, READER, 'Show how much the project may reserve.',
          'GET', _LIMITS),
    _rule(LIMITS_SHOW_ALL, ADMIN, 'Show how much any project may reserve.',
          'GET', _LIMITS),
    _rule(LIMITS_UPDATE, ADMIN, 'Give a project limits of its own.',
          'PUT', _LIMITS),
    _rule(BACKLOG_LIST, READER,
          'List requests for servers of the project.', 'GET', '/v1/requests'),
    _rule(BACKLOG_SHOW, READER, 'Show a request of the project.',
          'GET', _REQUEST),
    _rule(BACKLOG_ALL_PROJECTS, ADMIN,
          'See, count, change and cancel requests of all projects; list by '
          'project.', 'GET', '/v1/requests'),
    _rule(BACKLOG_DETAILS, ADMIN,
          'See how many hosts are short of what a request waits for, and the '
          'smallest shortfall.', 'GET', _REQUEST),
    _rule(BACKLOG_CREATE, MEMBER,
          'Create a request for servers, which start in the name of the '
          'user.', 'POST', '/v1/requests'),
    _rule(BACKLOG_ANY_CLASS, ADMIN,
          'Ask for any class of service, and not only for those that are open '
          'to all.', 'POST', '/v1/requests'),
    _rule(CLASS_LIST, READER, 'List the classes of service.',
          'GET', '/v1/classes'),
    _rule(BACKLOG_STATISTICS, READER, 'See waits of requests of the project.',
          'GET', '/v1/requests-statistics'),
    _rule(BACKLOG_PLAN, ADMIN,
          'See which requests of all projects would start now, and on which '
          'hosts.', 'GET', '/v1/backlog-plan'),
    _rule(BACKLOG_UPDATE, OWNER,
          'Change a request of the own user, in whose name it is started.',
          'PATCH', _REQUEST),
    _rule(BACKLOG_DELETE, OWNER,
          'Cancel a request of the own user, and have its servers deleted.',
          'DELETE', _REQUEST),
    _rule(WEBHOOK_SHOW, READER, 'Show the webhook of the project.',
          'GET', _WEBHOOK),
    _rule(WEBHOOK_UPDATE, MEMBER, 'Set the webhook of the project.',
          'PUT', _WEBHOOK),
    _rule(WEBHOOK_DELETE, MEMBER, 'Delete the webhook of the project.',
          'DELETE', _WEBHOOK),
]


def list_rules():
    """Return all rules, for the generators of samples and documentation."""
    return [*_BASE, *_DOCUMENTED]


def get_enforcer():
    """Return an enforcer for the tools of oslo.policy."""
    nova_conf.CONF([], project='nova')
    return _enforcer(nova_conf.CONF)


def _enforcer(conf):
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(list_rules())
    return enforcer


def check_string(conf, rule):
    """Return the check string of a rule as an operator has set it."""
    enforcer = _enforcer(conf)
    enforcer.load_rules()
    check = str(enforcer.rules[rule])
    alias = check.removeprefix('rule:')
    return str(enforcer.rules[alias]) if alias in enforcer.rules else check


class Policy:
    """Checks the rules as an operator has set them."""

    def __init__(self, conf):
        self._enforcer = _enforcer(conf)

    def allows(self, context, rule, owner=None):
        """Return whether a rule allows the operation.

        :param owner: (project id, user id) of the target, '' for no user;
            None for the caller's own
        """
        project_id, user_id = owner or (context.project_id, context.user_id)
        target = {'project_id': project_id, 'user_id': user_id}
        try:
            return bool(self._enforcer.authorize(rule, target, context))
        except policy.InvalidScope:
            return False

    def require(self, context, rule, owner=None):
        """Refuse with 403 unless a rule allows the operation."""
        if not self.allows(context, rule, owner):
            raise webob.exc.HTTPForbidden(
                f'Policy does not allow {rule} to be performed.')
