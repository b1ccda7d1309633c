# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-manage db purge and archive: remove closed records."""

import argparse
import contextlib
import datetime
import json
import os

import nova.conf
from oslo_utils import timeutils

from nova_preempt import db
from nova_preempt.cloud import cell_calls
from nova_preempt.cloud import instances
from nova_preempt.db import boot_host_choices
from nova_preempt.db import record_purge

CONF = nova.conf.CONF


def add_parsers(commands):
    """Add "purge" and "archive" to the commands of "db"."""
    what = ('decisions, reservations and requests closed before a date, and '
            'records of servers that Nova has deleted')
    for name, run, text in (
            ('purge', _purge, f'delete {what}'),
            ('archive', _archive, f'append to a file, then delete, {what}')):
        parser = commands.add_parser(name, help=text)
        age = parser.add_mutually_exclusive_group(required=True)
        age.add_argument('--before', metavar='DATE', type=date,
                         help='date in UTC, such as 2026-01-31 or '
                              '2026-01-31T12:00:00')
        age.add_argument('--days', metavar='N', type=_days, dest='before',
                         help='instead of a date: closed over N days ago')
        if name == 'archive':
            parser.add_argument('--file', metavar='F', required=True,
                                help='file; gets one JSON object per line')
        parser.add_argument('--dry-run', action='store_true',
                            help='count the records, but delete none')
        parser.set_defaults(run=run, needs_nova=True)


def date(text):
    """Parse an argument as a naive datetime in UTC."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{text!r} must be a date such as 2026-01-31') from None
    if found.tzinfo is not None:
        found = found.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return found


def _days(text):
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f'{text!r} must be a whole number')
    try:
        return timeutils.utcnow() - datetime.timedelta(days=int(text))
    except OverflowError:
        raise argparse.ArgumentTypeError(f'{text} days are too many') from None


def _purge(args):
    return _remove(args, lambda table, rows: None)


def _archive(args):
    if args.dry_run:
        return _purge(args)
    with _appended(args.file) as write:
        return _remove(args, write)


def _remove(args, write):
    """Write, then delete records, batch by batch."""
    database = db.Database(CONF)
    counts = []
    for table, kind in (('decisions', record_purge.DECISIONS),
                        ('reservations', record_purge.RESERVATIONS),
                        ('backlog_requests', record_purge.REQUESTS),
                        ('preemptible_servers', record_purge.HINTED)):
        counts.append(0)
        for rows in kind.find(database, args.before):
            if kind is record_purge.HINTED:
                living = existing([row['uuid'] for row in rows])
                rows = [row for row in rows if row['uuid'] not in living]
            counts[-1] += len(rows)
            if rows and not args.dry_run:
                write(table, rows)
                kind.delete(database, [row['uuid'] for row in rows])
    if not args.dry_run:
        # Not archived; an engine without a backlog does not remove them.
        boot_host_choices.forget_choices(database, args.before)
    decisions, reservations, requests, servers = counts
    print(f'{decisions} decisions, {reservations} reservations, {requests} '
          f'requests and {servers} servers '
          f'{"would be" if args.dry_run else "were"} deleted.')
    return 0


@contextlib.contextmanager
def _appended(path):
    """Yield a function that appends rows durably."""
    with open(path, 'ab+') as file:
        # A line truncated by a crash must not spoil the next one.
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b'\n':
                file.write(b'\n')
        _sync_directory(path)

        def write(table, rows):
            for row in rows:
                line = json.dumps({'table': table, **row}, sort_keys=True)
                file.write(line.encode() + b'\n')
            file.flush()
            os.fsync(file.fileno())

        yield write


def _sync_directory(path):
    """Make the name of a new file durable."""
    directory = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def existing(uuids):
    """Return the servers that Nova still has, including soft-deleted."""
    servers, unread = instances.get_many(uuids, limit_s=cell_calls.LONG_S)
    for why in unread.values():
        if why is not None:
            raise why
    return servers.keys() | unread.keys()
