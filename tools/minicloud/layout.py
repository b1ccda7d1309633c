# SPDX-License-Identifier: Apache-2.0
"""Directories, ports, names and passwords of a cloud."""

import dataclasses
import json
import pathlib

ADDRESS = '127.0.0.1'
PASSWORD = 'secret'
REGION = 'RegionOne'

# In the order of their ports, from Settings.port_base on.
_PORTS = ('keystone', 'placement', 'glance', 'nova-api', 'network',
          'nova-preempt-api', 'mariadb', 'rabbitmq', 'rabbitmq-distribution',
          'epmd',
          # Ports of metrics:
          'nova-preempt-scheduler-1', 'nova-preempt-scheduler-2',
          'nova-preempt-engine-1', 'nova-preempt-engine-2',
          'horizon')
# Ports of the machine's own servers.
_MACHINE_PORTS = {'mariadb': 3306, 'rabbitmq': 5672}


def write_whole(path, text):
    """Write a file atomically."""
    new = path.with_suffix('.new')
    new.write_text(text)
    new.rename(path)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings in which clouds may differ.

    :ivar computes: number of fake computes
    :ivar port_base: the first of fifteen ports; it is part of the names of
        databases, virtual hosts and users, where clouds share a server
    :ivar private: which of 'mariadb' and 'rabbitmq' are private
    :ivar devstack: whether the DevStack plugin writes our configuration
    :ivar dashboard: whether Horizon runs with our plugin
    """

    computes: int = 4
    port_base: int = 20000
    private: tuple[str, ...] = ('mariadb', 'rabbitmq')
    devstack: bool = False
    dashboard: bool = False


@dataclasses.dataclass(frozen=True)
class Layout:
    """Paths, ports and names of one cloud.

    :ivar directory: its state
    :ivar venv: the environment in which its services run
    """

    directory: pathlib.Path
    venv: pathlib.Path
    settings: Settings = Settings()

    @property
    def etc(self):
        return self.directory / 'etc'

    @property
    def data(self):
        return self.directory / 'data'

    @property
    def logs(self):
        return self.directory / 'log'

    @property
    def run(self):
        return self.directory / 'run'

    @property
    def clouds_yaml(self):
        return self.directory / 'clouds.yaml'

    @property
    def prefix(self):
        return f'minicloud_{self.settings.port_base}_'

    @property
    def computes(self):
        """Names of the compute hosts."""
        return [f'compute{number}'
                for number in range(1, self.settings.computes + 1)]

    def bin(self, name):
        return str(self.venv / 'bin' / name)

    def port(self, name):
        if name in _MACHINE_PORTS and name not in self.settings.private:
            return _MACHINE_PORTS[name]
        return self.settings.port_base + _PORTS.index(name)

    def own_ports(self):
        """Return {name: port} of this cloud's own listeners."""
        return {name: self.port(name) for name in _PORTS
                if (name not in _MACHINE_PORTS
                    or name in self.settings.private)
                and (name != 'horizon' or self.settings.dashboard)}

    def url(self, name, path=''):
        return f'http://{ADDRESS}:{self.port(name)}{path}'

    def database_url(self, name, suffix='?charset=utf8'):
        """Return the URL of a database, whose user has the same name."""
        name = self.prefix + name
        return (f'mysql+pymysql://{name}:{PASSWORD}@{ADDRESS}:'
                f'{self.port("mariadb")}/{name}{suffix}')

    def virtual_host(self, name):
        return f'{self.prefix}{name}'

    def broker_url(self, name):
        user = 'minicloud' if 'rabbitmq' in self.settings.private else 'guest'
        password = PASSWORD if user == 'minicloud' else 'guest'
        return (f'rabbit://{user}:{password}@{ADDRESS}:'
                f'{self.port("rabbitmq")}/{self.virtual_host(name)}')

    def make_directories(self):
        for directory in (self.etc, self.data, self.logs, self.run):
            directory.mkdir(parents=True, exist_ok=True)

    # Settings that later commands need.

    def save(self):
        write_whole(self.saved, json.dumps(
            dataclasses.asdict(self.settings)))

    def load(self):
        """Return the layout with saved settings, None without any."""
        try:
            saved = json.loads(self.saved.read_text())
        except FileNotFoundError:
            return None
        saved['private'] = tuple(saved['private'])
        return dataclasses.replace(self, settings=Settings(**saved))

    @property
    def saved(self):
        return self.directory / 'settings.json'


DATABASES = ('keystone', 'placement', 'glance', 'nova_api', 'nova_cell0',
             'nova_cell1', 'nova_preempt')
# Of the API level and of the cell: a conductor of one must not take the
# messages of the other.
VIRTUAL_HOSTS = ('super', 'cell1')
