# SPDX-License-Identifier: Apache-2.0
"""Command line of minicloud.

    PYTHONPATH=tools python3 -m minicloud [--dir DIRECTORY] COMMAND
"""

import argparse
import dataclasses
import pathlib
import signal
import sys

from minicloud import cloud
from minicloud import layout as layouts
from minicloud import services
from minicloud import steps

DIRECTORY = pathlib.Path(__file__).resolve().parents[2] / 'build' / 'minicloud'
ENDS = (signal.SIGINT, signal.SIGTERM)
SIGNALS = {'freeze': signal.SIGSTOP, 'thaw': signal.SIGCONT}


def _up(layout, args):
    with cloud.locked(layout):
        known = layout.load()
        if known:
            _check(known.settings, args)
        layout = known or cloud.choose(layout, args.port_base, args.private)
        if args.devstack:
            layout = dataclasses.replace(layout, settings=dataclasses.replace(
                layout.settings, devstack=True))
        if args.dashboard:
            layout = dataclasses.replace(layout, settings=dataclasses.replace(
                layout.settings, dashboard=True))
        if args.computes is not None:
            layout = dataclasses.replace(layout, settings=dataclasses.replace(
                layout.settings, computes=args.computes))
        cloud.up(layout)
    print(f'export OS_CLIENT_CONFIG_FILE={layout.clouds_yaml} '
          'OS_CLOUD=minicloud-admin')
    print(f'export PATH={layout.venv}/bin:$PATH')
    if layout.settings.dashboard:
        print(f'# {cloud.dashboard_line(layout)}')


def _check(settings, args):
    """Refuse arguments that the existing cloud cannot adopt."""
    wrong = []
    if args.port_base not in (None, settings.port_base):
        wrong.append(f'--port-base is {args.port_base}, but the ports of the '
                     f'existing cloud begin at {settings.port_base}')
    others = set(layouts.Settings.private) - set(settings.private)
    if args.private and others:
        wrong.append('--private is set, but the existing cloud uses the '
                     f'machine\'s {" and ".join(sorted(others))}')
    if wrong:
        raise steps.StepFailed(
            f'{"; ".join(wrong)}: run "down --wipe" first')


def _down(layout, args):
    with cloud.locked(layout):
        layout = layout.load()
        if layout is not None:
            cloud.down(layout, args.wipe)


def _status(layout, _args):
    layout = _require(layout)
    return 0 if cloud.status(layout) else 1


def _one(layout, args):
    layout = _require(layout)
    with cloud.locked(layout, alone=False):
        manager = services.Services(layout)
        if args.name not in manager.names():
            raise steps.StepFailed(
                f'unknown service {args.name}; the services are: '
                + ', '.join(manager.names()))
        if args.command in SIGNALS:
            manager.signal(args.name, SIGNALS[args.command])
        else:
            {'start': manager.start, 'stop': manager.stop,
             'kill': manager.kill}[args.command](args.name)


def _state(layout, args):
    print(services.Services(_require(layout)).state(args.name))


def _require(layout):
    known = layout.load()
    if known is None:
        raise steps.StepFailed(f'no cloud in {layout.directory}')
    return known


def _parse():
    parser = argparse.ArgumentParser(
        prog='minicloud', description='A small OpenStack on 127.0.0.1.')
    parser.add_argument('--dir', type=pathlib.Path, default=DIRECTORY,
                        help='directory of the cloud (build/minicloud)')
    parser.add_argument('--venv', type=pathlib.Path,
                        help='virtual environment of its services (DIR/venv)')
    commands = parser.add_subparsers(dest='command', required=True)
    up = commands.add_parser('up', help='start all services that do not run')
    up.add_argument('--computes', type=int, metavar='N',
                    help='number of fake computes (4)')
    up.add_argument('--private', action='store_true',
                    help='start a separate MariaDB and RabbitMQ, even if the '
                         'machine runs them')
    up.add_argument('--port-base', type=int, metavar='PORT',
                    help='first of fifteen ports (20000)')
    up.add_argument('--devstack', action='store_true',
                    help='let our DevStack plugin write the configuration of '
                         'nova_preempt, with the functions of the checkout '
                         'in DEVSTACK_DIR, if set')
    up.add_argument('--dashboard', action='store_true',
                    help='start Horizon with our plugin, and enable the '
                         'backlog')
    up.set_defaults(do=_up)
    down = commands.add_parser('down', help='stop all services')
    down.add_argument('--wipe', action='store_true',
                      help='remove configuration, data and logs, too')
    down.set_defaults(do=_down)
    commands.add_parser('status', help='show which services run').set_defaults(
        do=_status)
    for name, text in (
            ('start', 'start a service'), ('stop', 'terminate a service'),
            ('kill', 'kill a service, as in a crash'),
            ('freeze', 'suspend a service'), ('thaw', 'resume a service')):
        one = commands.add_parser(name, help=text)
        one.add_argument('name')
        one.set_defaults(do=_one)
    state = commands.add_parser(
        'state', help='show whether a service is running, frozen or gone')
    state.add_argument('name')
    state.set_defaults(do=_state)
    return parser.parse_args()


def _interrupted(_number, _frame):
    # Only once: the running steps have to end before services are stopped.
    for number in ENDS:
        signal.signal(number, lambda *_: None)
    raise KeyboardInterrupt


def main():
    args = _parse()
    for number in ENDS:
        signal.signal(number, _interrupted)
    directory = args.dir.resolve()
    layout = layouts.Layout(directory, (
        args.venv or directory / 'venv').absolute())
    try:
        return args.do(layout, args) or 0
    except steps.StepFailed as exc:
        cloud.fail(exc)
        return 1
    except OSError as exc:
        sys.stderr.write(f'{exc}\n')
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == '__main__':
    sys.exit(main())
