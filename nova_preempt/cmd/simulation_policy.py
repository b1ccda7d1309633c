# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""nova.conf as the policy of a simulation."""

from nova import exception
from oslo_config import cfg

from nova_preempt.backlog import options as backlog_options
from nova_preempt.backlog import passes
from nova_preempt.conf import backlog
from nova_preempt.conf import budgets
from nova_preempt.conf import engine
from nova_preempt.conf import preemption
from nova_preempt.core import headroom
from nova_preempt.core.batch import choice
from nova_preempt.core.batch import waiting
from nova_preempt.core.model import CostOptions
from nova_preempt.core.scheduling import policy as policies
from nova_preempt.handover import eviction_policy
from nova_preempt.handover import policies as handover_policies
from nova_preempt.simulator import setting


class PolicyError(Exception):
    """A file of options cannot be used; the message says why."""


def read_policy(path, workers):
    """(the simulator's Options, what of the file is not simulated).

    :param path: of a file such as nova.conf, None for the defaults
    :param workers: of all schedulers
    :raises PolicyError: something is wrong with it
    """
    conf = cfg.ConfigOpts()
    # Not the credentials, which would be asked for.
    conf.register_opts(preemption.OPTS + budgets.OPTS,
                       group=preemption.GROUP)
    conf.register_opts(engine.OPTS, group=engine.GROUP)
    conf.register_opts(backlog.OPTS, group=backlog.GROUP)
    try:
        conf([] if path is None else ['--config-file', path],
             project='nova', default_config_files=[],
             default_config_dirs=[])
        unknown = [] if path is None else _unknown(path)
        return _options(conf, workers), [*_left_out(conf), *unknown]
    except (cfg.Error, ValueError, choice.NotInstalled,
            exception.InvalidConfiguration) as exc:
        raise PolicyError(f'{path or "options"}: {exc}') from None


def _unknown(path):
    """Names in our groups that may be misspelt."""
    found = {}
    cfg.ConfigParser(path, found).parse()
    return [f'[{group}]{name}, which is not known'
            for group, opts in ((preemption.GROUP, preemption.list_opts()),
                                (engine.GROUP, engine.OPTS),
                                (backlog.GROUP, backlog.OPTS))
            for name in sorted(found.get(group, {}))
            if name.replace('-', '_') not in {opt.dest for opt in opts}]


def _options(conf, workers):
    ours = conf[preemption.GROUP]
    later = conf[engine.GROUP]
    # Each value is read once: oslo.config is slow to read from.
    return setting.Options(
        policies.Policy(
            eviction_policy.get_rules(ours), tuple(ours.actions),
            handover_policies.load_cost(ours.cost),
            CostOptions(ours.billing_period_s, ours.repeat_cost_s),
            eviction_policy.notice_rule(ours),
            always=ours.consider == 'always',
            shortlist=ours.shortlist_size),
        enabled=ours.enabled and 'create' in ours.preempting_operations,
        maximum_runtime_s=ours.maximum_runtime_s,
        max_waiting_requests=ours.max_waiting_requests * workers,
        max_attempts=ours.max_attempts,
        termination_timeout_s=ours.termination_timeout_s,
        stop_retention_s=ours.stop_retention_s,
        project_budget=ours.project_budget,
        group_budget=ours.group_budget,
        budget_window_s=ours.budget_window_s,
        headroom=_headroom(ours.headroom), max_age_s=ours.max_age_s,
        interval_s=later.interval_s,
        restore_interval_s=later.restore_interval_s,
        restore_at_once=later.restore_at_once,
        restore_timeout_s=later.restore_timeout_s,
        backlog=_backlog(conf[backlog.GROUP]))


def _headroom(text):
    try:
        return headroom.parse(text)
    except ValueError as exc:
        raise PolicyError(f'[preemption]headroom: {exc}') from None


def _backlog(ours):
    """What the simulator knows of [backlog], None if it is off."""
    if not ours.enabled:
        return None
    placing = backlog_options.placing(ours)
    planner = None
    if placing is not None:
        placer = choice.make(placing)
        planner = waiting.Planner(lambda: placer)
    return setting.Backlog(
        passes.load_order(ours), backlog_options.passes(ours),
        backlog_options.lifecycle(ours), ours.pass_interval_s, planner)


def _left_out(conf):
    """Options that are set, and that a simulation does not act upon."""
    ours = conf[preemption.GROUP]
    found = []
    if 'migrate' in ours.actions:
        found.append('migrate in [preemption]actions')
    if conf[backlog.GROUP].enabled and conf[backlog.GROUP].ladders:
        found.append('[backlog]ladders')
    return found
