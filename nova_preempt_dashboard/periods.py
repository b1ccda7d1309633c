# SPDX-License-Identifier: Apache-2.0
"""Times and durations of the API, and free stretches of a calendar."""

import datetime

#: Times and lengths outside of these are refused: a calculation with them
#: might overflow.
EARLIEST = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc)
LATEST = datetime.datetime(9000, 1, 1, tzinfo=datetime.timezone.utc)
DAY = datetime.timedelta(days=1)
MOST_HOURS = 24 * 366 * 100
_UNITS = (('d', 86400), ('h', 3600), ('min', 60), ('s', 1))


def parse(text):
    """Return an aware datetime of a time in ISO 8601, None for None."""
    if not text:
        return None
    found = datetime.datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(
        tzinfo=datetime.timezone.utc)


def to_text(moment):
    """Return an aware datetime as the API takes it, in UTC."""
    return moment.astimezone(datetime.timezone.utc).strftime(
        '%Y-%m-%dT%H:%M:%SZ')


def at(moment):
    """Return the query for what overlaps a second, an aware datetime."""
    return {'since': to_text(moment), 'until': to_text(
        moment + datetime.timedelta(seconds=1))}


def duration(seconds):
    """Return a duration in its two largest units: "1 d 4 h"."""
    if seconds is None:
        return ''
    rest = round(abs(seconds))
    parts = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count or (parts and len(parts) < 2):
            parts.append((count, unit))
        if len(parts) == 2:
            break
    text = ' '.join(f'{count} {unit}' for count, unit in parts if count)
    return f'{"-" if seconds < 0 else ""}{text}' if text else '0 s'


def slots(start, length_s, count):
    """Return [(start, end)] of consecutive periods of one length."""
    length = datetime.timedelta(seconds=length_s)
    return [(start + index * length, start + (index + 1) * length)
            for index in range(count)]


def free_slots(periods, is_free, most_calls):
    """Return for each period whether it is free, None where unknown.

    If a longer period is free, so are all within it. So a calendar that is
    mostly free takes few calls.

    :param periods: consecutive (start, end)
    :param is_free: called with start and end
    :param most_calls: after these the rest remains unknown
    """
    answers = [None] * len(periods)
    waiting = [(0, len(periods))] if periods else []
    while waiting and most_calls > 0:
        first, last = waiting.pop(0)
        most_calls -= 1
        free = is_free(periods[first][0], periods[last - 1][1])
        if free or last - first == 1:
            answers[first:last] = [bool(free)] * (last - first)
        else:
            middle = (first + last) // 2
            waiting += [(first, middle), (middle, last)]
    return answers


def stretches(periods, answers):
    """Return [(start, end)] of neighboring free periods taken together."""
    found = []
    for (start, end), free in zip(periods, answers, strict=True):
        if not free:
            continue
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found
