# SPDX-License-Identifier: Apache-2.0
"""Exceptions that the services return to callers.

They travel over RPC: each takes its message and nothing else.
"""


class PreemptError(Exception):
    """Base of the exceptions."""


class InvalidConfiguration(Exception):
    """Options are invalid; the message names them."""


class ServerNotFound(PreemptError):
    """The server does not exist, or belongs to another project."""


class NotPreemptible(PreemptError):
    """The server is not preemptible."""


class AlreadyEnding(PreemptError):
    """The server is being evicted already."""


class CannotEnd(PreemptError):
    """The server cannot be evicted in its state; the message says why."""


class Paused(PreemptError):
    """An operator has paused it; the message says what, and why."""


class FlavorNotFound(PreemptError):
    """The flavor does not exist, or the project may not use it."""


class NoAnswer(PreemptError):
    """A service did not answer, or failed."""


class TooManyQuestions(PreemptError):
    """The project has reached its rate limit.

    Its arguments are the message and after how many seconds to retry.
    """


class InvalidReservation(PreemptError):
    """A request for a reservation is invalid; the message names the field."""


class ReservationsDisabled(PreemptError):
    """Reservations are disabled; the message names the option."""


class NoHostsForReservation(PreemptError):
    """Too few matching hosts are free for the time requested."""


class ReservationLimit(PreemptError):
    """A project's limit is exceeded; names limit, allowed, used, asked."""


class ReservationNotFound(PreemptError):
    """The reservation does not exist, or belongs to another project."""


class InvalidRequest(PreemptError):
    """Invalid request; the message names the field.

    The message may quote the field's value, which may be secret: a log gets
    ``field`` alone.
    """

    def __init__(self, message, field=''):
        super().__init__(message)
        self.field = field


class BacklogDisabled(PreemptError):
    """The backlog is disabled; the message names the option."""


class RequestLimit(PreemptError):
    """A project has too many requests; names limit, allowed, used."""


class RequestNotFound(PreemptError):
    """The request does not exist, or belongs to another project."""


class NoTrust(PreemptError):
    """No trust of this user can be made; the message says what helps."""


class WrongState(PreemptError):
    """The reservation or request is in a state that does not allow this."""


def first_line(exc):
    """Return the first line of an exception; SQLAlchemy's have many."""
    return (str(exc).strip() or type(exc).__name__).splitlines()[0]
