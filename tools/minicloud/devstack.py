# SPDX-License-Identifier: Apache-2.0
"""Our part of the configuration, written by our plugin of DevStack."""

import os
import pathlib
import shlex
import subprocess

from minicloud import files
from minicloud import steps

REPO = pathlib.Path(__file__).resolve().parents[2]
PHASES = REPO / 'tests' / 'unit' / 'devstack' / 'run_phases.sh'
# What of the phase post-config is about files of services.
WORK = ('load:', 'configure_nova_preempt_placement', 'configure_nova_preempt')
# As DevStack has them; SameHostFilter and DifferentHostFilter are its own.
FILTERS = ('ComputeFilter', 'ComputeCapabilitiesFilter',
           'ImagePropertiesFilter', 'ServerGroupAntiAffinityFilter',
           'ServerGroupAffinityFilter', 'SameHostFilter',
           'DifferentHostFilter')


def write(layout, path, sections):
    """Write a nova.conf; the plugin extends it and placement.conf.

    :param sections: what is in there without us
    :raises StepFailed: the plugin has
    """
    files.save(path, {**sections, 'filter_scheduler': {
        'enabled_filters': ','.join(FILTERS)}})
    site = layout.run / 'devstack-site.sh'
    url = layout.database_url('nova_preempt', suffix='')
    site.write_text(
        f'KEYSTONE_SERVICE_URI={layout.url("keystone", "/v3")}\n'
        f'function database_connection_url {{ echo {shlex.quote(url)}; }}\n')
    log = layout.logs / 'step-devstack.log'
    with log.open('w') as file:
        found = subprocess.run(
            ['bash', str(PHASES), *WORK], check=False, stdout=file,
            stderr=subprocess.STDOUT, env={
                'PATH': os.environ['PATH'], 'HOME': str(layout.directory),
                'ROOT': str(layout.directory), 'REPO': str(REPO),
                'SITE': str(site), 'NOVA_PREEMPT_RESERVATIONS': 'True',
                'DEVSTACK_DIR': os.environ.get('DEVSTACK_DIR', '')})
    if found.returncode:
        raise steps.StepFailed('the plugin of DevStack has failed', log)
