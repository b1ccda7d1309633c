# SPDX-License-Identifier: Apache-2.0
"""Checks that options have valid values that fit together.

oslo.config looks at a value when it is asked for it, which may be long after
the start, and then raises. Whether a good value makes sense is a rule, which
stands where its option is used: each service checks the list of its rules
before it starts.
"""

from oslo_config import cfg
from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt.conf import opts

LOG = logging.getLogger(__name__)

_BAD = (cfg.Error, ValueError)


def find_faults(conf, rules=()):
    """Return [a sentence for each option that makes no sense].

    :param conf: a ConfigOpts on which nova_preempt.conf is registered
    :param rules: functions of conf, each of which raises InvalidConfiguration
        with one sentence. Nobody asks them where a value is bad
    """
    found = _find_bad_values(conf)
    if found:
        # The rules would stumble upon them.
        return found
    for rule in rules:
        try:
            rule(conf)
        except exceptions.InvalidConfiguration as exc:
            found.append(str(exc))
    return list(dict.fromkeys(found))


def check(conf, rules=()):
    """Fail where there is such an option.

    :raises InvalidConfiguration: names all of them
    """
    faults = find_faults(conf, rules)
    if faults:
        raise exceptions.InvalidConfiguration('; '.join(faults))


def _find_bad_values(conf):
    found = []
    for group, _options in opts.list_opts():
        for name in conf[group]:
            try:
                conf[group][name]
            except _BAD as exc:
                found.append(f'[{group}]{name}: {_reason(exc)}')
    return found


class GoodValues:
    """Has options keep their values where a reloaded file has bad ones.

    Otherwise whatever asks for such an option would fail from then on.

    :param conf: a ConfigOpts in which nothing is wrong
    :ivar kept: {(group, name)} of the options that keep theirs now
    """

    def __init__(self, conf):
        self._good = {(group, opt.dest): conf[group][opt.dest]
                      for group, options in opts.list_opts()
                      for opt in options if opt.mutable}
        self.kept = set()
        conf.register_mutate_hook(self._look)

    def _look(self, conf, _changed):
        for group, name in self._good:
            if (group, name) in self.kept:
                self.kept.remove((group, name))
                conf.clear_override(name, group)
            try:
                self._good[group, name] = conf[group][name]
                continue
            except _BAD as exc:
                reason = _reason(exc)
            # Not above, where oslo.log would add the exception once more.
            LOG.error('[%(group)s]%(name)s keeps its value: %(reason)s',
                      {'group': group, 'name': name, 'reason': reason})
            self.kept.add((group, name))
            conf.set_override(name, self._good[group, name], group)


def _reason(exc):
    # "Value for option NAME from LocationInfo(...) is not valid: REASON"
    return str(exc).rpartition(' is not valid: ')[2]
