# SPDX-License-Identifier: Apache-2.0
"""Exceptions that the services return to callers.

They travel over RPC: each takes its message and nothing else.
"""


class PreemptError(Exception):
    """What all of them are."""


class InvalidConfiguration(Exception):
    """Options that make no sense; the message names them."""


class ServerNotFound(PreemptError):
    """There is no such server, or it is of another project."""


class NotPreemptible(PreemptError):
    """The server is a normal one."""


class AlreadyEnding(PreemptError):
    """The server is on its way out."""


class CannotEnd(PreemptError):
    """The server is in a state in which it cannot end; says why."""


class Paused(PreemptError):
    """An operator has stopped it for now; says what, and why."""


class FlavorNotFound(PreemptError):
    """There is no such flavor, or the project may not use it."""


class NoAnswer(PreemptError):
    """The service that was asked did not answer, or failed."""


class TooManyQuestions(PreemptError):
    """The project has to wait before it asks again.

    Its arguments are its message, and for how many seconds.
    """


class InvalidReservation(PreemptError):
    """What is asked of a reservation makes no sense; names the field."""


class ReservationsDisabled(PreemptError):
    """No reservations are made; names the option."""


class NoHostsForReservation(PreemptError):
    """So many matching hosts are not free for so long."""


class ReservationLimit(PreemptError):
    """More than a project may reserve; names limit, allowed, used, asked."""


class ReservationNotFound(PreemptError):
    """There is no such reservation, or it is of another project."""


class InvalidRequest(PreemptError):
    """Invalid request; the message names the field.

    The message may quote the field's value, which may be secret: a log gets
    ``field`` alone.
    """

    def __init__(self, message, field=''):
        super().__init__(message)
        self.field = field


class BacklogDisabled(PreemptError):
    """No requests are taken; names the option."""


class RequestLimit(PreemptError):
    """More requests than a project may have; names limit, allowed, used."""


class RequestNotFound(PreemptError):
    """There is no such request, or it is of another project."""


class NoTrust(PreemptError):
    """Nothing can be done in this user's name later; says what helps."""


class WrongState(PreemptError):
    """The reservation or request is past the point where this can be done."""


def first_line(exc):
    """Return the first line of an exception; SQLAlchemy writes many."""
    return (str(exc).strip() or type(exc).__name__).splitlines()[0]
