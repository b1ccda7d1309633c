# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ: the machine's server, or a private one."""

import base64
import hashlib
import json
import os

from minicloud import layout as layouts
from minicloud import steps

# NOTE: not the script on the path: Debian's requires root and changes user.
SERVER = '/usr/lib/rabbitmq/bin/rabbitmq-server'
NODE = 'minicloud@localhost'
SALT = b'mini'


def command():
    return (SERVER,)


def epmd_command(layout):
    # NOTE: RabbitMQ would start an epmd that listens on all addresses.
    return ('epmd', '-address', layouts.ADDRESS,
            '-port', str(layout.port('epmd')))


def environment(layout):
    home = layout.data / 'rabbitmq'
    return {
        'HOME': str(home),
        'RABBITMQ_NODENAME': NODE,
        'RABBITMQ_NODE_IP_ADDRESS': layouts.ADDRESS,
        'RABBITMQ_NODE_PORT': str(layout.port('rabbitmq')),
        'RABBITMQ_DIST_PORT': str(layout.port('rabbitmq-distribution')),
        'RABBITMQ_BASE': str(home),
        'RABBITMQ_MNESIA_BASE': str(home / 'mnesia'),
        'RABBITMQ_LOG_BASE': str(layout.logs),
        'RABBITMQ_CONFIG_FILE': str(home / 'rabbitmq'),
        'RABBITMQ_ENABLED_PLUGINS_FILE': str(home / 'enabled_plugins'),
        'RABBITMQ_CONF_ENV_FILE': str(home / 'none.conf'),
        'ERL_EPMD_ADDRESS': layouts.ADDRESS,
        'ERL_EPMD_PORT': str(layout.port('epmd')),
        'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS':
            '-kernel inet_dist_use_interface {127,0,0,1} '
            '+sbwt none +sbwtdcpu none +sbwtdio none',
    }


def prepare(layout):
    """Write the files of a private server."""
    home = layout.data / 'rabbitmq'
    home.mkdir(exist_ok=True)
    definitions = home / 'definitions.json'
    definitions.write_text(json.dumps({
        'users': [{
            'name': 'minicloud', 'tags': 'administrator',
            'password_hash': _hash(layouts.PASSWORD),
            'hashing_algorithm': 'rabbit_password_hashing_sha256'}],
        **_definitions(layout, 'minicloud')}))
    (home / 'rabbitmq.conf').write_text(
        f'listeners.tcp.1 = {layouts.ADDRESS}:{layout.port("rabbitmq")}\n'
        f'load_definitions = {definitions}\n'
        'vm_memory_high_watermark.relative = 0.3\n')


def make_virtual_hosts(layout, env):
    """Create the virtual hosts on the machine's server."""
    file = layout.data / 'rabbitmq-definitions.json'
    file.write_text(json.dumps(_definitions(layout, 'guest')))
    file.chmod(0o644)
    _ctl(layout, env, 'import_definitions', str(file))


def remove_virtual_hosts(layout, env):
    """Delete the virtual hosts on the machine's server, with their queues."""
    # NOTE: deleting one that does not exist would fail.
    make_virtual_hosts(layout, env)
    for name in layouts.VIRTUAL_HOSTS:
        _ctl(layout, env, 'delete_vhost', layout.virtual_host(name))


def machine_has_one(layout, env):
    try:
        _ctl(layout, env, 'eval', 'ok.')
    except (OSError, steps.StepFailed):
        return False
    return True


def _ctl(layout, env, *arguments):
    steps.call(
        ['rabbitmqctl', '--quiet', '--timeout', '30', *arguments], env,
        layout.logs / 'step-rabbitmqctl.log')


def _definitions(layout, user):
    hosts = [layout.virtual_host(name) for name in layouts.VIRTUAL_HOSTS]
    return {
        'vhosts': [{'name': name} for name in hosts],
        'permissions': [
            {'user': user, 'vhost': name, 'configure': '.*', 'write': '.*',
             'read': '.*'} for name in hosts],
    }


def _hash(password):
    digest = hashlib.sha256(SALT + password.encode()).digest()
    return base64.b64encode(SALT + digest).decode()


def is_installed():
    return os.path.exists(SERVER)
