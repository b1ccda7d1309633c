# SPDX-License-Identifier: Apache-2.0

"""Builds Nova's body of a server from arguments of server create."""

import argparse
import base64
import json
import pathlib

from osc_lib import exceptions

from nova_preempt.client import base
from nova_preempt.client import name_lookup

#: Arguments that cannot be combined with --body.
_OPTIONS = ('image', 'network', 'key_name', 'property', 'user_data', 'hint',
            'security_group', 'availability_zone', 'description', 'tag')
# Networks that Nova chooses itself.
_CHOICES = ('auto', 'none')
_KEYS = 'os:scheduler_hints'


def add(parser):
    """Add the arguments to a parser."""
    parser.add_argument('--image', metavar='<image>',
                        help='Image of the servers (name or id)')
    parser.add_argument(
        '--network', metavar='<network>', action='append',
        help='Network (name or id), auto or none; may be repeated (default: '
             'auto)')
    parser.add_argument('--key-name', metavar='<key-name>',
                        help='Key pair of the user')
    parser.add_argument(
        '--security-group', metavar='<name>', action='append',
        help='Security group; may be repeated')
    parser.add_argument('--availability-zone', metavar='<zone>',
                        help='Availability zone of the servers')
    parser.add_argument('--description', metavar='<text>',
                        help='Description of the servers')
    parser.add_argument(
        '--property', metavar='<name=value>', action='append', type=pair,
        help='Metadata of the servers; may be repeated')
    parser.add_argument(
        '--tag', metavar='<tag>', action='append',
        help='Tag of the servers; may be repeated')
    parser.add_argument(
        '--user-data', metavar='<file>', type=_file,
        help='File of the user data of the servers')
    parser.add_argument(
        '--hint', metavar='<name=value>', action='append', type=pair,
        help='Scheduler hint; may be repeated')
    parser.add_argument(
        '--body', metavar='<file>', type=_json,
        help='JSON file with the body of POST /servers of Nova; cannot be '
             'combined with other options of the servers')


def make(command, args):
    """Return the body.

    :raises CommandError: an image or network does not exist
    """
    if args.body is not None:
        both = [name for name in _OPTIONS if getattr(args, name)]
        if both:
            raise exceptions.CommandError(
                f'--{both[0].replace("_", "-")} cannot be combined with '
                '--body.')
        return args.body
    server = base.given(
        name=args.name,
        imageRef=args.image and name_lookup.image_id(command, args.image),
        networks=_networks(command, args.network or ['auto']),
        key_name=args.key_name, description=args.description,
        availability_zone=args.availability_zone, tags=args.tag,
        security_groups=args.security_group and [
            {'name': name} for name in args.security_group],
        metadata=args.property and dict(args.property),
        user_data=args.user_data)
    body = {'server': server}
    if args.hint:
        body[_KEYS] = _hints(args.hint)
    return body


def _networks(command, names):
    if len(names) == 1 and names[0] in _CHOICES:
        return names[0]
    if set(names) & set(_CHOICES):
        raise exceptions.CommandError(
            '--network auto or none cannot be combined with other networks.')
    return [{'uuid': name_lookup.network_id(command, name)} for name in names]


def _hints(pairs):
    """Return hints; repeated hints become a list, as in Nova's client."""
    found = {}
    for name, value in pairs:
        if name in found:
            before = found[name]
            value = [*(before if isinstance(before, list) else [before]),
                     value]
        found[name] = value
    return found


def pair(text):
    """Return (name, value) of "name=value"."""
    name, sign, value = text.partition('=')
    if not (name and sign):
        raise argparse.ArgumentTypeError(f'{text!r} must be <name>=<value>')
    return name, value


def _file(path):
    """Return the contents of a file in base64, as in user_data."""
    return base64.b64encode(_read(path)).decode()


def _json(path):
    try:
        found = json.loads(_read(path))
    except (ValueError, RecursionError) as exc:
        raise argparse.ArgumentTypeError(
            f'{path} is not valid JSON: {exc}') from None
    if not (isinstance(found, dict) and isinstance(found.get('server'), dict)):
        raise argparse.ArgumentTypeError(
            f'{path} must contain the object "server" of POST /servers')
    return found


def _read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as exc:
        raise argparse.ArgumentTypeError(
            f'{path} cannot be read: {exc}') from None
