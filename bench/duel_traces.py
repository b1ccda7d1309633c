# SPDX-License-Identifier: Apache-2.0
"""The public traces that bench/duel.py replays, and the clouds for them.

None of the files is part of this repository: each Recipe says where it is
published, and the SHA-256 of each file that the published figures are of.
"""

import csv
import dataclasses
import hashlib
import math
import pathlib
import random

from nova_preempt.core.model import SECOND, Inventory
from nova_preempt.simulator.traces import generator
from nova_preempt.simulator.traces import trace_formats
from nova_preempt.simulator.traces import trace_model

#: Classes of the requests.
NORMAL, PREEMPTIBLE = 'normal', 'preemptible'
GB = 1024


def read_alibaba(path, from_s=10_340_000):
    """Read openb_pod_list_*.csv of Alibaba's GPU cluster of 2023.

    Best-effort pods (``qos`` is BE) are preemptible. A share of a GPU counts
    as such, in thousandths. The first tenth of the pods arrives within four
    months, all others in the last month: that is what is replayed, with the
    pods that are there when it begins.
    """
    with open(path, encoding='ascii', newline='') as file:
        for row in csv.DictReader(file):
            created_s, deleted_s = (
                float(row[name]) - from_s
                for name in ('creation_time', 'deletion_time'))
            if deleted_s <= max(0, created_s):
                continue
            resources = {
                'VCPU': math.ceil(int(row['cpu_milli']) / 1000),
                'MEMORY_MB': int(row['memory_mib']),
                'CUSTOM_GPU': int(row['num_gpu']) * int(row['gpu_milli'])}
            yield boot(max(0, created_s), row['name'], resources,
                       row['qos'] == 'BE', deleted_s - max(0, created_s))


def read_azure(folder, share, chance, part=1.0, name='v1.dev',
               end_s=2_100_000):
    """Read the arrivals of Azure's trace of 2017 that Huawei has extracted.

    One line for each 300 s, with the flavors of the VMs that arrive and, in
    another file, their durations in classes. ``|`` ends a batch of VMs of one
    tenant. VMs of a line are spread evenly over its 300 s, and each runs for
    the middle of its class; those that were still there at the end of the
    trace run until the end.

    :param share: of the batches whose VMs are preemptible
    :param part: of the batches that are read at all
    """
    flavors = {}
    for line in _lines(folder, 'flav_map.txt'):
        size, letter = line.split()
        vcpus, memory_gb = size.split(',')
        flavors[letter] = {'VCPU': int(vcpus),
                           'MEMORY_MB': round(float(memory_gb) * GB)}
    bounds_s = {}
    for line in _lines(folder, 'v1.interval_map.txt'):
        bound_s, bin = line.split()
        bounds_s.setdefault(bin, []).append(int(bound_s))
    middle_s = {bin: max(150, (min(each) + max(each)) / 2)
                for bin, each in bounds_s.items()}
    first_s = None
    for kinds, ends in zip(_lines(folder, f'{name}.txt'),
                           _lines(folder, f'{name}.c{end_s}.txt'),
                           strict=True):
        at_s, kinds = kinds.split()
        first_s = int(at_s) if first_s is None else first_s
        kinds = kinds.strip(',').split(',')
        ends = ends.split()[1].strip(',').split(',')
        is_read, is_spot = chance.random() < part, chance.random() < share
        for nth, (kind, end) in enumerate(zip(kinds, ends, strict=True)):
            if kind == '|':
                is_read, is_spot = (chance.random() < part,
                                    chance.random() < share)
            elif is_read:
                yield boot(int(at_s) - first_s + 300 * nth / len(kinds),
                           f'{at_s}-{nth}', flavors[kind], is_spot,
                           middle_s[end[1:]] if end[0] == 'U' else None)


def read_swf(path, share, chance, host, until_s):
    """Read the beginning of a log in the Standard Workload Format.

    A job with more processors than a host becomes several servers.

    :param share: of the jobs that are preemptible
    """
    jobs = {}
    for each in trace_formats.Trace('swf', [path], trace_model.MachineSize(
            vcpus=host['VCPU'])):
        if each.at_us > until_s * SECOND:
            break
        job = each.id.partition('.')[0]
        if job not in jobs:
            jobs[job] = chance.random() < share
        yield dataclasses.replace(
            each, class_name=PREEMPTIBLE if jobs[job] else NORMAL)


def _lines(folder, name):
    with open(pathlib.Path(folder, name), encoding='ascii') as file:
        yield from file


def boot(at_s, id, resources, is_preemptible, duration_s):
    """Return a Boot of these times in seconds."""
    return trace_model.Boot(
        round(at_s * SECOND), id, {name: amount for name, amount
                                   in resources.items() if amount}, '',
        PREEMPTIBLE if is_preemptible else NORMAL,
        None if duration_s is None else round(duration_s * SECOND))


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A trace: where it comes from, and how it is read.

    :param source: where it is published
    :param files: {file name: SHA-256}
    :param host: {resource class: amount} of each host of the cloud
    :param read: given the folder of the files and a random.Random, yields the
        requests
    :param rule: which requests are preemptible
    """

    source: str
    files: dict
    host: dict
    read: object
    rule: str

    def boots(self, folder, seed):
        """Return (requests in order of time, how many fit no host).

        :raises ValueError: a file is not the one that was measured
        """
        for name, digest in self.files.items():
            found = hashlib.sha256(
                pathlib.Path(folder, name).read_bytes()).hexdigest()
            if found != digest:
                raise ValueError(f'{name} has the SHA-256 {found}; the '
                                 f'published figures are of {digest}')
        boots = sorted(self.read(folder, random.Random(seed)),
                       key=lambda each: each.at_us)
        fitting = [each for each in boots if all(
            self.host.get(name, 0) >= amount
            for name, amount in each.resources.items())]
        return fitting, len(boots) - len(fitting)

    def inventories(self):
        """Return {resource class: Inventory} of a host."""
        return {name: Inventory(amount) for name, amount in self.host.items()}


def quantile_vcpus(boots, share=0.95):
    """Return how many vCPUs normal requests hold, if all are served at once.

    So many or fewer for this share of the time of the trace.
    """
    last_us = boots[-1].at_us
    changes = []
    for each in boots:
        if each.class_name == NORMAL:
            vcpus = each.resources.get('VCPU', 0)
            changes.append((each.at_us, vcpus))
            if each.duration_us is not None:
                changes.append((each.at_us + each.duration_us, -vcpus))
    held, since_us, times = 0, 0, {}
    for at_us, change in sorted(changes):
        at_us = min(at_us, last_us)
        times[held] = times.get(held, 0) + at_us - since_us
        held, since_us = held + change, at_us
    times[held] = times.get(held, 0) + last_us - since_us
    left_us = share * last_us
    for vcpus in sorted(times):
        left_us -= times[vcpus]
        if left_us <= 0:
            return vcpus
    return 0


_SWF_HOST = {'VCPU': 16, 'MEMORY_MB': 16 * GB}
_SWF = 'NASA-iPSC-1993-3.1-cln.swf.gz'

TRACES = {
    'azure': Recipe(
        'github.com/huaweicloud/trace_generation_rnn (fa856db), '
        'resources/maps and resources/traces; made of vmtable.csv of '
        'AzurePublicDatasetV1', {
            'flav_map.txt':
                '2b7ae5498471022e4bb0d62b148cbde0'
                '1d5704a5fef482096ad780e17cbb0902',
            'v1.interval_map.txt':
                '404436c751ac5a345092b8b5c9cb91ca'
                '99ae013c675fd932cfb7fc633eb9579d',
            'v1.dev.txt':
                '78a3e6c258553b458bd8e55d867ef5fa'
                '1a2b82cdd5c4c4b1f777210669835af6',
            'v1.dev.c2100000.txt':
                '46521121c2917b14800abd090354b410'
                '45ff5f5d88f8b144456af6e098196b32'},
        {'VCPU': 32, 'MEMORY_MB': 224 * GB},
        lambda folder, chance: read_azure(folder, 0.4, chance, part=0.05),
        '40 % of the batches of VMs, drawn by seed; 5 % of all batches'),
    'alibaba': Recipe(
        'github.com/alibaba/clusterdata (7a6c496), cluster-trace-gpu-v2023/'
        'csv', {
            'openb_pod_list_default.csv':
                '1ee7ed79c27a3b0861cda8ddba86a004'
                'c6aba904caafa329a76ae93ca63834a8'},
        {'VCPU': 64, 'MEMORY_MB': 256 * GB, 'CUSTOM_GPU': 8000},
        lambda folder, chance: read_alibaba(
            pathlib.Path(folder, 'openb_pod_list_default.csv')),
        'best-effort pods, as the trace says'),
    'nasa': Recipe(
        'github.com/cloudsimplus/cloudsimplus-examples (4394086), src/main/'
        'resources/workload/swf; made by the Parallel Workloads Archive',
        {_SWF: '5589ae9b2fb78e3bf92de097497cf33a'
               '91607de1ad54563e43533f7827597f29'},
        _SWF_HOST,
        lambda folder, chance: read_swf(pathlib.Path(folder, _SWF), 0.4,
                                        chance, _SWF_HOST, 30 * 86400),
        '40 % of the jobs, drawn by seed; the first 30 days'),
    # Not a public one: for a run without files.
    'generated': Recipe(
        'generated', {}, {'VCPU': 8, 'MEMORY_MB': 16000, 'DISK_GB': 160},
        lambda folder, chance: generator.generate(generator.Load(
            6.0, 60.0, parts=(
                generator.LoadPart(NORMAL, 0.6, mean_s=7200, sigma=1.0),
                generator.LoadPart(PREEMPTIBLE, 0.4, mean_s=7200, sigma=1.0),
            )), chance.randrange(2**31)),
        '40 % of the requests, drawn by seed'),
}
