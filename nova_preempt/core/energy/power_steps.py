# SPDX-License-Identifier: Apache-2.0
"""Decides the next step of a host that is powered off or on.

    on -> emptying -> sleeping -> asleep -> waking -> on
                          \\                   \\-> failed -> waking
                           \\-> failed

next_step() is called repeatedly. If it needs more facts, it returns the action
that reads them; so nothing is read in vain, and the facts that matter before a
host is shut down are read right before.
"""

from collections.abc import Collection
import dataclasses
import enum

ON = 'on'
EMPTYING = 'emptying'      # its service is disabled; if it stays empty...
SLEEPING = 'sleeping'      # ...it is powered off
ASLEEP = 'asleep'
WAKING = 'waking'          # powered on, its service has still to report
FAILED = 'failed'          # did not boot, or go off, in time
STATES = (ON, EMPTYING, SLEEPING, ASLEEP, WAKING, FAILED)

#: Prefix of the disabled reason of compute services that we have disabled.
#: Services that an operator has disabled are left alone.
REASON = 'nova-preempt-engine: '

#: States in which a host will be on if it is needed.
COMING = (EMPTYING, SLEEPING, ASLEEP, WAKING)
#: All states but ON.
NOT_ON = (*COMING, FAILED)


#: How long after its service was disabled a host must stay empty: requests in
#: scheduling show up within this time.
EMPTY_CHECKS_S = 10
#: How long a host may take to shut down before it is switched off hard.
POWER_OFF_TIMEOUT_S = 300
#: How long its controller may take to report a switch.
POWER_SWITCH_TIMEOUT_S = 60
#: How many boots in a row are tried before a host is marked as failed.
BOOTS = 2
#: How long after it has failed a host is tried again.
FAILED_RETRY_S = 3600


class Power(enum.Enum):
    """The power state that the controller of a host reports."""

    NOT_ASKED = 'not asked'
    UNKNOWN = 'unknown'        # it does not answer
    ON = 'on'
    OFF = 'off'


class Action(enum.Enum):
    """The next action on a host."""

    WAIT = 'nothing'
    ASK_POWER = 'ask the controller'
    LOOK = 'read its service and its servers again'
    DISABLE = 'disable its service'
    SHUT_DOWN = 'let it shut down'
    SWITCH_OFF = 'power it off without a shutdown'
    POWER_ON = 'power it on'
    MOVE = 'record another state'


@dataclasses.dataclass(frozen=True)
class Step:
    """An action, and the new state of a MOVE.

    :param enable: whether its service is enabled first
    :param cycle: whether it is then powered off hard, to boot anew
    :param boots: how many boots were begun, in that state
    """

    act: Action
    state: str = ''
    reason: str = ''
    enable: bool = False
    cycle: bool = False
    boots: int = 0


@dataclasses.dataclass(frozen=True)
class HostFacts:
    """Known facts of a host.

    :param age_s: how long it has been in its state
    :param closed_s: how long this process has seen its service disabled in
        this state
    :param up: whether its service reports
    :param reported: whether it has since it entered the state
    :param disabled: whether its service is disabled
    :param ours: whether we disabled it
    :param boots: how many boots were begun since it was on last
    :param asked_s: how long ago it was first asked to shut down or power on in
        its state, 0 before
    :param tried: whether it was asked to power off just now, and has time left
    :param empty: whether nothing at all is on it, None before a LOOK
    :param running: whether Nova's cell has servers there, likewise
    :param error: the last error, for people
    """

    state: str
    age_s: float
    closed_s: float
    up: bool
    reported: bool
    disabled: bool
    ours: bool
    boots: int = 0
    asked_s: float = 0.0
    tried: bool = False
    power: Power = Power.NOT_ASKED
    empty: bool | None = None
    running: bool | None = None
    error: str = ''

    @property
    def is_operators(self) -> bool:
        return self.disabled and not self.ours


_WAIT = Step(Action.WAIT)
_ASK = Step(Action.ASK_POWER)
_LOOK = Step(Action.LOOK)


def next_step(facts: HostFacts, boot_timeout_s: float) -> Step:
    """Return the next step of a host; see the module.

    :param boot_timeout_s: how long it may need to boot
    """
    rule = _RULES.get(facts.state)
    return rule(facts, boot_timeout_s) if rule else _WAIT


def is_limited(step: Step, facts: HostFacts) -> bool:
    """Tell whether a step counts among the wakes that a minute allows.

    A host that is on already draws no more by it.
    """
    return step.state == WAKING and (step.cycle or facts.power is not Power.ON)


def adopted(up: bool) -> str:
    """Return the state of an unknown host whose service we have disabled.

    A host that is up only has to be enabled. All others sleep: they are woken
    when they are needed, within the limits.
    """
    return WAKING if up else ASLEEP


def _move(state: str, reason: str, *, enable: bool = False,
          cycle: bool = False, boots: int = 0) -> Step:
    return Step(Action.MOVE, state, reason, enable, cycle, boots)


def _keep(facts: HostFacts, reason: str, error: str = '') -> Step:
    """Open the host to servers again."""
    return _move(ON, f'{reason}: {error}' if error else reason,
                 enable=facts.ours)


def _empty(facts: HostFacts, boot_timeout_s: float) -> Step:
    """Disable its service; power it off if the host stays empty."""
    if facts.is_operators or not facts.up:
        return _keep(facts, 'its service was disabled or is down')
    if facts.age_s >= boot_timeout_s:
        # For instance, Nova or Placement does not answer.
        return _keep(facts, 'it could not be checked whether it is empty',
                     facts.error)
    if not facts.disabled:
        return _disable(facts)
    if facts.closed_s < EMPTY_CHECKS_S:
        return _WAIT
    if facts.empty is None:
        return _LOOK
    if not facts.empty:
        return _keep(facts, 'a server has come to it')
    return _move(SLEEPING, '')


def _disable(facts: HostFacts) -> Step:
    """Disable its service, unless its controller could not wake it again."""
    if facts.power is Power.NOT_ASKED:
        return _ASK
    if facts.power is Power.UNKNOWN:
        return _keep(facts, 'its controller does not answer', facts.error)
    if facts.power is Power.OFF:
        return _keep(facts, 'its controller reports it off, but its service '
                     'is up: it may be the controller of another host')
    return Step(Action.DISABLE)


def _sleep(facts: HostFacts, boot_timeout_s: float) -> Step:
    """Shut it down; power it off hard if it does not shut down.

    New servers are looked for before each. If the request to shut down fails
    it is repeated, and the host has its whole time: it may be shutting down
    all the same. So it is too late to turn back: once it is off, a new server
    wakes it, and if it stays on it is opened again once its service reports.
    """
    if facts.power is Power.NOT_ASKED:
        return _ASK
    if facts.power is Power.OFF:
        return _move(ASLEEP, '')
    if _is_stuck(facts, boot_timeout_s):
        kept = _keep(facts, 'it could not be powered off', facts.error)
        # Somebody may have powered it on, and may still work on it.
        return kept if facts.up or facts.is_operators else dataclasses.replace(
            kept, state=WAKING, enable=False, boots=BOOTS)
    if facts.power is Power.UNKNOWN:
        return _lost(facts, boot_timeout_s)
    if not facts.ours or facts.tried or facts.empty is False:
        return _WAIT
    if facts.empty is None:
        return _LOOK
    return Step(Action.SHUT_DOWN if facts.asked_s < POWER_OFF_TIMEOUT_S
                else Action.SWITCH_OFF)


def _lost(facts: HostFacts, boot_timeout_s: float) -> Step:
    """Mark the host as failed if its controller has died meanwhile."""
    if facts.age_s < POWER_OFF_TIMEOUT_S + boot_timeout_s:
        return _WAIT
    return _move(FAILED, 'it is unknown whether it is off, since its '
                 f'controller does not answer: {facts.error}')


def _is_stuck(facts: HostFacts, boot_timeout_s: float) -> bool:
    """Tell whether the host is still on, as far as is known."""
    if facts.age_s < POWER_OFF_TIMEOUT_S + POWER_SWITCH_TIMEOUT_S:
        return False
    # The service counts where the controller does not answer.
    return facts.up or (facts.power is Power.ON and facts.age_s >= (
        POWER_OFF_TIMEOUT_S + boot_timeout_s))


def _asleep(facts: HostFacts, boot_timeout_s: float) -> Step:
    """Wake it if a server needs it or an operator powered it on."""
    if facts.power is Power.NOT_ASKED:
        return _ASK
    on = facts.power is Power.ON
    if facts.is_operators:
        return _move(ON, 'an operator has powered it on') if on else _WAIT
    if not facts.disabled:
        return _move(WAKING, 'its compute service was enabled')
    if on:
        # An operator may still work on it, so it is not cycled.
        return _move(WAKING, 'it was powered on by others', boots=BOOTS)
    if facts.empty is None:
        return _LOOK
    return _WAIT if facts.empty else _move(WAKING, 'a server has come to it')


def _wake(facts: HostFacts, boot_timeout_s: float) -> Step:
    """Power it on, and open it to servers once its service reports."""
    if facts.is_operators:
        return _move(ASLEEP, 'an operator has disabled its service')
    if facts.power is Power.NOT_ASKED:
        return _ASK
    # NOTE: its last report before it was off may be read late.
    if facts.reported and facts.power is not Power.OFF:
        return _move(ON, '', enable=facts.ours)
    # NOTE: a pause may have left it off for long, so it is powered on first.
    if facts.power is Power.OFF and facts.asked_s < boot_timeout_s:
        return Step(Action.POWER_ON)
    if (facts.asked_s or facts.age_s) < boot_timeout_s:
        return _WAIT
    if facts.power is Power.ON and facts.boots + 1 < BOOTS:
        if facts.running is None:
            return _LOOK
        if facts.ours and not facts.running:
            return _move(
                WAKING, 'it is power-cycled, since its compute service '
                f'has not reported within {boot_timeout_s:g} s',
                cycle=True, boots=facts.boots + 1)
    why = facts.error or 'its compute service has not reported'
    return _move(FAILED, f'it did not boot within {boot_timeout_s:g} '
                 f's: {why}')


def _failed(facts: HostFacts, boot_timeout_s: float) -> Step:
    """Take it back if it booted late; else retry much later."""
    late = facts.age_s >= FAILED_RETRY_S
    if facts.is_operators or not (late or facts.reported):
        return _WAIT
    if facts.power is Power.NOT_ASKED:
        return _ASK
    if facts.reported and facts.power is not Power.OFF:
        return _move(WAKING, 'it has booted late', boots=BOOTS)
    if not late or facts.power is Power.UNKNOWN:
        return _WAIT
    if facts.power is Power.ON:
        return _move(WAKING, 'its boot is retried')
    return _move(ASLEEP, 'it had failed to boot')


def measured_boot_s(step: Step, facts: HostFacts) -> float | None:
    """Return how long the boot took that a step ends, None if none did.

    A host that somebody else has powered on, or that was on, shows nothing.
    """
    has_booted = facts.state == WAKING and step.state == ON
    return (has_booted and facts.asked_s) or None


_RULES = {EMPTYING: _empty, SLEEPING: _sleep, ASLEEP: _asleep,
          WAKING: _wake, FAILED: _failed}


@dataclasses.dataclass(frozen=True)
class Occupants:
    """Uuids of servers and consumers on a host, or moving to or from it.

    A server in build has allocations in Placement before its host knows of it;
    a migrating server may be known by its migration record only; a server
    without allocations is on the host all the same.

    :param consumers: of allocations of the host, or of any nested provider
    :param servers: the servers that Nova's cell has there
    :param migrations: servers that move from it or to it
    """

    consumers: frozenset[str] = frozenset()
    servers: frozenset[str] = frozenset()
    migrations: frozenset[str] = frozenset()


def is_empty(occupants: Occupants,
             ignored: Collection[str] = frozenset()) -> bool:
    """Tell whether a host has no occupants.

    :param ignored: uuids that do not count, such as those of victims
    """
    found = (occupants.consumers | occupants.servers | occupants.migrations)
    return found <= frozenset(ignored)
