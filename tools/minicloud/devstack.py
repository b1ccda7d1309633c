# SPDX-License-Identifier: Apache-2.0
"""Writes configuration with the DevStack plugin of this repository."""

import os
import pathlib
import shlex
import subprocess

from minicloud import files
from minicloud import steps

REPO = pathlib.Path(__file__).resolve().parents[2]
PHASES = REPO / 'tests' / 'unit' / 'devstack' / 'run_phases.sh'
# The steps of the phase post-config that write configuration files.
WORK = ('load:', 'configure_nova_preempt_placement', 'configure_nova_preempt')
# DevStack's filters; SameHostFilter and DifferentHostFilter are its additions.
FILTERS = ('ComputeFilter', 'ComputeCapabilitiesFilter',
           'ImagePropertiesFilter', 'ServerGroupAntiAffinityFilter',
           'ServerGroupAffinityFilter', 'SameHostFilter',
           'DifferentHostFilter')


def write(layout, path, sections):
    """Write nova.conf, and let the plugin extend it and placement.conf.

    :param sections: of nova.conf, before the plugin's
    :raises StepFailed: the plugin failed
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
