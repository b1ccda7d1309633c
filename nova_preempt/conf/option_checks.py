# SPDX-License-Identifier: Apache-2.0
"""Checks that options have valid values that fit together.

oslo.config validates a value when it is read, which may be long after the
start. Rules on valid values are defined where their options are used; each
service checks its list of rules before it starts.
"""

from oslo_config import cfg
from oslo_log import log as logging

from nova_preempt import exceptions
from nova_preempt.conf import opts

LOG = logging.getLogger(__name__)

_BAD = (cfg.Error, ValueError)


def find_faults(conf, rules=()):
    """Return [a sentence for each invalid option].

    :param conf: a ConfigOpts on which nova_preempt.conf is registered
    :param rules: functions of conf that raise InvalidConfiguration with one
        sentence. They are not called if a value is invalid
    """
    found = _find_bad_values(conf)
    if found:
        # Rules would fail on invalid values.
        return found
    for rule in rules:
        try:
            rule(conf)
        except exceptions.InvalidConfiguration as exc:
            found.append(str(exc))
    return list(dict.fromkeys(found))


def check(conf, rules=()):
    """Check the options.

    :raises InvalidConfiguration: names all invalid options
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


class LastValidValues:
    """Keeps the last valid values if a reloaded file has invalid ones.

    Otherwise each read of such an option would fail.

    :param conf: a ConfigOpts with valid values
    :ivar kept: {(group, name)} of the options that keep their last value
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
            # Not in the except block, where oslo.log would add the exception.
            LOG.error('[%(group)s]%(name)s keeps its value: %(reason)s',
                      {'group': group, 'name': name, 'reason': reason})
            self.kept.add((group, name))
            conf.set_override(name, self._good[group, name], group)


def _reason(exc):
    # "Value for option NAME from LocationInfo(...) is not valid: REASON"
    return str(exc).rpartition(' is not valid: ')[2]
