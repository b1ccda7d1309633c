# SPDX-License-Identifier: Apache-2.0
"""Mended faults of reservations, power control, backlog and recommendations.

Each is put back as those of mended_faults are.
"""

import dataclasses
from unittest import mock

from nova_preempt.advice import recommender
from nova_preempt.backlog import orphan_trusts
from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import nova_api
from nova_preempt.core.backlog import boot_outcome
from nova_preempt.core.backlog import state_from_servers
from nova_preempt.core.energy import energy_controller
from nova_preempt.core.energy import power_steps
from nova_preempt.reservation import drain_executor
from nova_preempt.scheduler.filters import reservation_filter
from tests.exploration.mended_fault import fault
from tests.exploration.mended_fault import returns
from tests.exploration.mended_fault import together


def _power(state, change):
    """A patch of the steps of hosts in a state.

    :param change: given the function that returns the step, and its arguments
    """
    real = power_steps._RULES[state]
    return mock.patch.dict(power_steps._RULES, {
        state: lambda *args: change(real, *args)})


# -- power -----------------------------------------------------------------

@fault(28, 'hosts_with_guests_are_on', 'power')
def hosts_sleep_without_a_last_look():
    """A host is shut down that a server came to after the first look."""
    return _power(power_steps.SLEEPING, lambda real, facts, boot_timeout_s:
                  real(dataclasses.replace(facts, empty=True),
                       boot_timeout_s))


@fault(28, 'hosts_with_guests_are_on', 'power')
def hosts_sleep_as_soon_as_closed():
    """A host is shut down while a request that chose it is still built."""
    return _power(power_steps.EMPTYING, lambda real, facts, boot_timeout_s:
                  real(dataclasses.replace(facts, empty=True, closed_s=1e9),
                       boot_timeout_s))


@fault(13, 'consumers_exist', 'power')
def servers_in_build_do_not_count():
    """A host counts as empty though a server is to be built on it."""
    def is_empty(occupants, ignored=frozenset()):
        return real(power_steps.Occupants(servers=occupants.servers), ignored)
    real = power_steps.is_empty
    return mock.patch.object(power_steps, 'is_empty', is_empty)


@fault(29, 'consumers_exist', 'power')
def hosts_are_not_woken_for_servers():
    """A host that a server came to as it fell asleep stays asleep."""
    return _power(power_steps.ASLEEP, lambda real, facts, boot_timeout_s:
                  real(dataclasses.replace(facts, empty=True),
                       boot_timeout_s))


@fault(1, 'hosts_on_are_open', 'power')
def woken_hosts_stay_closed():
    """A host that has booted is not open to servers again."""
    return _power(power_steps.WAKING, lambda *args: dataclasses.replace(
        args[0](*args[1:]), enable=False))


@fault(2, 'hosts_on_are_open', 'power')
def kept_hosts_stay_closed():
    """A host that does not go to sleep after all is not opened again."""
    def note(*args):
        intents, memory = real(*args)
        return [each for each in intents if not isinstance(
            each, energy_controller.Adopt)], memory
    note_round = energy_controller.StepPhase.NOTE
    real = energy_controller._ROUNDS[note_round]
    # Hosts that a crash left closed were not looked for then.
    return together(
        _power(power_steps.EMPTYING, lambda *args: dataclasses.replace(
            args[0](*args[1:]), enable=False)),
        mock.patch.dict(energy_controller._ROUNDS, {note_round: note}))


@fault(18, 'hosts_asleep_are_off', 'power')
def powered_on_hosts_stay_asleep():
    """A sleeping host that somebody has powered on counts as asleep."""
    return _power(power_steps.ASLEEP, lambda real, facts, boot_timeout_s:
                  real(facts, boot_timeout_s)
                  if facts.power is not power_steps.Power.ON
                  else power_steps._WAIT)


# -- backlog ---------------------------------------------------------------

@fault(1, 'requests_start_once', 'backlog')
def lost_boots_are_refused():
    """A request whose boot has no answer is booted again at once."""
    def classify(status, kind, text, tries=0):
        found = real(status, kind, text, tries)
        return (boot_outcome.BootAnswer.LATER
                if found is boot_outcome.BootAnswer.UNKNOWN else found)
    def retry_values(*args):
        return {**real_values(*args), 'next_try_at': None}
    real, real_values = boot_outcome.classify_answer, boot_outcome.retry_values
    # Servers of boots that were given up were not deleted then.
    return together(
        mock.patch.object(boot_outcome, 'classify_answer', classify),
        mock.patch.object(boot_outcome, 'retry_values', retry_values),
        returns(state_from_servers._Judgement, '_is_void', False))


@fault(2, 'trusts_have_a_request', 'backlog')
def trusts_outlive_requests():
    """The trust of a request stays after its end."""
    return returns(keystone_trusts.Trusts, 'delete', None)


@fault(9, 'trusts_have_a_request', 'backlog')
def trusts_of_dead_submissions_stay():
    """No process deletes the trust of a submission of a dead API."""
    return returns(orphan_trusts.OrphanTrusts, 'clear', 0)


# -- reservations ----------------------------------------------------------

@fault(5, 'reserved_hosts_are_closed', 'reservations')
def strangers_boot_on_reserved_hosts():
    """The scheduler puts other servers on reserved hosts."""
    return mock.patch.object(
        reservation_filter.ReservationFilter, 'rule',
        staticmethod(lambda spec_obj: lambda node: True))


@fault(7, 'reservations_get_hosts', 'reservations')
def strangers_are_kept():
    """Preemptible servers stay on the hosts of a reservation that begins."""
    return returns(drain_executor.DrainExecutor, '_evict', None)


# -- recommendations -------------------------------------------------------

@fault(2, 'recommendations_are_withdrawn', 'recommendations')
def recommendations_stay():
    """A recommendation to leave stays after its cause is gone."""
    return mock.patch.object(recommender.Recommender, '_withdraw',
                             lambda self, uuid, now_us: self._given.pop(uuid))


@fault(43, 'recommendations_are_withdrawn', 'recommendations')
def unanswered_recommendations_are_forgotten():
    """A recommendation whose change has no answer counts as before."""
    def write(self, uuid, *args):
        before = dict(self._given)
        try:
            return real(self, uuid, *args)
        except nova_api.NoAnswer:
            self._given = before
            raise
    real = recommender.Recommender._write
    return mock.patch.object(recommender.Recommender, '_write', write)


@fault(34, 'recommendations_are_withdrawn', 'recommendations')
def refused_recommendations_are_forgotten():
    """A recommendation stays whose withdrawal Nova has refused once."""
    def write(self, *args):
        return bool(real(self, *args))
    real = recommender.Recommender._write
    return mock.patch.object(recommender.Recommender, '_write', write)
