# SPDX-License-Identifier: Apache-2.0
"""nova-preempt-manage: manual operations of an operator."""

# Before all other imports.
from nova_preempt.cmd import native_threads  # noqa: F401 isort: skip

import argparse
import datetime
import getpass
import json
import socket
import sys
import traceback

from keystoneauth1 import exceptions as ks_exc
from nova import exception
from nova import objects
from nova import rpc as nova_rpc
import nova.conf
from oslo_db import exception as db_exc
import sqlalchemy.exc

from nova_preempt import db
from nova_preempt import exceptions
from nova_preempt import rpc
from nova_preempt.cloud import keystone_trusts
from nova_preempt.cloud import nova_conf
from nova_preempt.cloud import placement_api
from nova_preempt.cmd import arguments
from nova_preempt.cmd import hand_back_to_nova
from nova_preempt.cmd import purge
from nova_preempt.cmd import rotate_keys
from nova_preempt.cmd import trace_export
from nova_preempt.cmd import verify_consistency
import nova_preempt.conf
from nova_preempt.conf import option_checks
from nova_preempt.db import connection
from nova_preempt.db import decisions as db_decisions
from nova_preempt.db import pauses
from nova_preempt.db import schema_upgrade
from nova_preempt.power import compute_hosts

# Exceptions of a service that is unavailable, or not installed yet.
_AWAY = (ks_exc.ClientException, exception.NovaException, db_exc.DBError,
         db_exc.CantStartEngineError, sqlalchemy.exc.SQLAlchemyError,
         placement_api.PlacementError, keystone_trusts.KeystoneUnavailable,
         compute_hosts.CellsUnreadable, OSError)

# Rules for options of every command, and of commands that need Nova.
_RULES = (connection.check_url,)
_NOVA_RULES = (*_RULES, rpc.check_transport)

CONF = nova.conf.CONF


def _sync(args):
    found = db.Database(CONF)
    schema_upgrade.sync(found)
    print(f'The database is at revision {schema_upgrade.get_revision(found)}.')
    return 0


def _version(args):
    print(schema_upgrade.get_revision(db.Database(CONF)) or 'no tables')
    return 0


def _show(args):
    """Print decisions, one per line: as JSON, or briefly if --open."""
    brief = args.brief or (args.open and not args.json)
    decisions = db.Decisions(db.Database(CONF)).get_decisions(
        server_uuid=args.server, request_id=args.request_id,
        statuses=db_decisions.OPEN if args.open else None)
    for decision in decisions:
        print(_brief(decision) if brief else json.dumps(
            {**vars(decision), 'victims': [*map(vars, decision.victims)]},
            sort_keys=True, default=_time))
    return 0 if decisions else 1


def _brief(decision):
    victims = ', '.join(f'{victim.server_uuid} {victim.status}'
                        for victim in decision.victims)
    return (f'{decision.uuid} {decision.status} {decision.operation} on '
            f'{decision.host} for {decision.server_uuid or "no server"}: '
            f'{victims or "no victims"}')


def _time(value):
    if isinstance(value, datetime.datetime):
        return value.isoformat() + 'Z'
    raise TypeError(value)


def _chosen(args):
    return pauses.ALL if args.what == 'all' else (args.what,)


def _pause(args):
    database = db.Database(CONF)
    for what in _chosen(args):
        # No token is required: access to the database authorizes.
        pauses.pause(database, what, args.reason,
                     user_id=f'{getpass.getuser()}@{socket.gethostname()}')
    return _list_pauses(args)


def _resume(args):
    database = db.Database(CONF)
    for what in _chosen(args):
        pauses.resume(database, what)
    return _list_pauses(args)


def _list_pauses(args):
    found = pauses.get(db.Database(CONF))
    for item in found.values():
        print(f'{item.what}: paused since {item.since:%Y-%m-%dT%H:%M:%S}Z by '
              f'{item.user_id or "unknown"}: {item.reason}')
    if not found:
        print('Nothing is paused.')
    return 0


def _add_pauses(groups):
    """Add "pause", "resume" and "pauses"."""
    pause = groups.add_parser(
        'pause', help='pause preemption, reservations, power control and the '
        'backlog in all schedulers and engines')
    pause.add_argument('--reason', required=True, metavar='TEXT',
                       help='reason that users and operators see')
    pause.set_defaults(run=_pause)
    resume = groups.add_parser('resume', help='resume after a pause')
    resume.set_defaults(run=_resume)
    for parser in (pause, resume):
        parser.add_argument('--what', choices=[*pauses.ALL, 'all'],
                            default='all', help='feature; default: all')
    groups.add_parser('pauses', help='list the paused features').set_defaults(
        run=_list_pauses)


def _parser():
    parser = argparse.ArgumentParser(
        prog='nova-preempt-manage', description=__doc__)
    parser.add_argument('--config-file', action='append', default=[],
                        help='path of nova.conf; may be repeated')
    parser.add_argument('--config-dir', action='append', default=[],
                        help='directory of *.conf files; may be repeated')
    parser.set_defaults(needs_nova=False, needs_tables=True)
    groups = parser.add_subparsers(required=True, metavar='COMMAND')

    commands = arguments.add_group(groups, 'db', 'the database')
    commands.add_parser(
        'sync', help='create or upgrade the tables').set_defaults(
            run=_sync, needs_tables=False)
    commands.add_parser(
        'version', help='print the schema revision').set_defaults(
            run=_version, needs_tables=False)
    purge.add_parsers(commands)

    commands = arguments.add_group(groups, 'decision', 'decision records')
    show = commands.add_parser(
        'show', help='print decision records as JSON, one per line; with '
                     '--open a summary of each')
    show.add_argument('--server', metavar='UUID',
                      help='only decisions for this server')
    show.add_argument('--request-id', metavar='ID',
                      help='only decisions of this request')
    show.add_argument('--open', action='store_true',
                      help='only decisions that are not finished')
    form = show.add_mutually_exclusive_group()
    form.add_argument('--brief', action='store_true',
                      help='print a one-line summary instead of JSON')
    form.add_argument('--json', action='store_true',
                      help='print JSON, even with --open')
    show.set_defaults(run=_show)

    verify_consistency.add_parser(groups)
    _add_pauses(groups)
    hand_back_to_nova.add_parser(groups)
    rotate_keys.add_parsers(groups)
    trace_export.add_parsers(groups)
    return parser


def main(argv=None):
    args = _parser().parse_args(argv)
    nova_preempt.conf.register_opts(CONF)
    command_line = ['nova-preempt-manage',
                    *(f'--config-file={path}' for path in args.config_file),
                    *(f'--config-dir={path}' for path in args.config_dir)]
    try:
        nova_conf.read(CONF, command_line, init_rpc=False)
        option_checks.check(CONF, _NOVA_RULES if args.needs_nova else _RULES)
        if args.needs_tables:
            schema_upgrade.check(db.Database(CONF))
        if args.needs_nova:
            # Nova's cells cannot be read without the options of its bus.
            nova_rpc.init(CONF)
            objects.register_all()
        return args.run(args)
    except exceptions.InvalidConfiguration as exc:
        print(f'nova-preempt-manage: {exc}', file=sys.stderr)
    except _AWAY as exc:
        print('nova-preempt-manage: the command failed: '
              f'{exceptions.first_line(exc)}', file=sys.stderr)
    except Exception:  # noqa: BLE001 (not to exit with 1)
        # Exit status 1, Python's default, means here that problems were found.
        traceback.print_exc()
    return 2


if __name__ == '__main__':
    sys.exit(main())
