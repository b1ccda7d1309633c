# SPDX-License-Identifier: Apache-2.0
"""Parsers of command arguments.

Each function takes the text and raises argparse.ArgumentTypeError, whose
message is shown with the name of the option.
"""

import argparse
import datetime
import json
import pathlib
import re

#: Statuses of preemptions, reservations and waiting requests.
PREEMPTION_STATUSES = ('intent', 'claimed', 'rolling_back', 'done',
                       'rolled_back', 'aborted', 'refused')
RESERVATION_STATUSES = ('pending', 'active', 'degraded', 'ended',
                        'cancelled', 'error')
REQUEST_STATUSES = ('waiting', 'placing', 'active', 'partly_active',
                    'evicted', 'done', 'failed', 'cancelled', 'expired')

_UNITS_S = {'d': 86400, 'h': 3600, 'm': 60, 's': 1}
_DURATION = re.compile(r'(?:\d+[dhms])+')


def duration_s(text):
    """Return the seconds of "5400", "90m", "1h30m", "4h" or "2d"."""
    if text.isascii() and text.isdigit():
        return int(text)
    if not (text.isascii() and _DURATION.fullmatch(text)):
        raise argparse.ArgumentTypeError(
            f'{text!r} must be a number of seconds, or a duration such as '
            '90m, 4h, 2d or 1h30m')
    return sum(int(number) * _UNITS_S[unit] for number, unit in
               re.findall(r'(\d+)([dhms])', text))


def time(text):
    """Check a time in ISO 8601 and return its text."""
    try:
        if 'T' not in text.upper():
            raise ValueError(text)
        datetime.datetime.fromisoformat(text.upper())
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{text!r} must be a time such as 2026-11-20T12:00:00Z') from None
    return text


def limit_s(text):
    """Return the seconds of a duration, or -1 for no limit."""
    return -1 if text == '-1' else duration_s(text)


def limit(text):
    """Return a whole number, or -1 for no limit."""
    if re.fullmatch(r'-1|[0-9]{1,9}', text) is None:
        raise argparse.ArgumentTypeError(
            f'{text!r} must be an integer, or -1 for no limit')
    return int(text)


def quantity(text):
    """Return a whole number from 1 on."""
    if re.fullmatch(r'0*[1-9][0-9]{0,8}', text) is None:
        raise argparse.ArgumentTypeError(f'{text!r} must be 1 or more')
    return int(text)


def host_properties(text):
    """Return a filter from JSON, or from the file of @path."""
    if text.startswith('@'):
        text = file_text(text[1:])
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise argparse.ArgumentTypeError(
            f'the filter is not valid JSON: {exc}; an example is '
            '\'[">=", "$vcpus", 8]\'') from None
    if not isinstance(value, list):
        raise argparse.ArgumentTypeError(
            'the filter must be a list such as \'[">=", "$vcpus", 8]\'')
    return value


def host_property(text):
    """Return (name, value) of "name=value"; a JSON list is parsed."""
    name, sign, value = text.partition('=')
    if not (name and sign):
        raise argparse.ArgumentTypeError(f'{text!r} must be <name>=<value>')
    if not value.startswith('['):
        return name, value
    try:
        return name, json.loads(value)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(
            f'the value of {name!r} must be a JSON list: {exc}') from None


def sort_key(text):
    """Return (name of a column, whether it is descending) of "name:desc"."""
    name, _, direction = text.partition(':')
    if not name or direction not in ('', 'asc', 'desc'):
        raise argparse.ArgumentTypeError(
            f'{text!r} must be <column>, <column>:asc or <column>:desc')
    return re.sub(r'\W+', '_', name.lower()).strip('_'), direction == 'desc'


def file_text(path):
    """Return the text of a file, without spaces around it."""
    try:
        return pathlib.Path(path).read_text(encoding='utf-8').strip()
    except (OSError, ValueError) as exc:
        raise argparse.ArgumentTypeError(
            f'{path} cannot be read: {exc}') from None
