#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drains a Kubernetes node when its preemptible server gets notice.

Runs on each preemptible node as a pod of a DaemonSet. It polls the metadata
service of OpenStack. When the notice is there, it cordons and taints the node
and evicts its pods, with the time that is left as their grace period; when the
notice is withdrawn, or the server was migrated or has come back, it makes the
node schedulable again. While the server is recommended to leave, a weaker
taint has new pods prefer other nodes.

The state is in the node alone, so the agent can be restarted at any moment.
"""

import datetime
import json
import logging
import os
import ssl
import time
import urllib.error
import urllib.request

LOG = logging.getLogger('spot-node-agent')

PREFIX = 'nova-preempt.openstack.org'
#: Label of each node on which the agent runs.
LABEL = f'{PREFIX}/preemptible'
#: Taint and label of a node with notice.
ENDING = f'{PREFIX}/ending'
#: Taint of a node whose server is recommended to leave.
LEAVING = f'{PREFIX}/recommended-to-leave'
#: Annotations of a node with notice: the notice, and whether we cordoned it.
NOTICE = f'{PREFIX}/notice'
CORDONED = f'{PREFIX}/cordoned'

CREDENTIALS = '/var/run/secrets/kubernetes.io/serviceaccount'
TIMEOUT_S = 10


class KubernetesError(Exception):
    """A refusal of the Kubernetes API.

    :ivar status: the HTTP status
    """

    def __init__(self, status, text):
        super().__init__(f'{status}: {text}')
        self.status = status


class Kubernetes:
    """The calls of the Kubernetes API that draining a node takes.

    :param url: of the API
    :param token: function that returns the bearer token, which is renewed
    """

    def __init__(self, url, token, context=None):
        self._url = url
        self._token = token
        self._context = context

    def call(self, method, path, body=None,
             content_type='application/json'):
        """Return the decoded answer.

        :raises KubernetesError: the API has refused
        :raises OSError: the API cannot be reached
        """
        request = urllib.request.Request(
            self._url + path, method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={'Authorization': f'Bearer {self._token()}',
                     'Accept': 'application/json',
                     'Content-Type': content_type})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S,
                                        context=self._context) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as exc:
            with exc:
                raise KubernetesError(
                    exc.code, exc.read(500).decode(errors='replace')) from exc

    def get_node(self, name):
        return self.call('GET', f'/api/v1/nodes/{name}')

    def patch_node(self, name, patch):
        """Change a node by a JSON merge patch, in which None removes a key.

        The patch has the resourceVersion that was read, so that no change of
        others is lost: the API answers 409 if there was one.
        """
        return self.call('PATCH', f'/api/v1/nodes/{name}', patch,
                         'application/merge-patch+json')

    def get_pods(self, node):
        return self.call(
            'GET', f'/api/v1/pods?fieldSelector=spec.nodeName%3D{node}'
            )['items']

    def evict(self, pod, grace_s):
        """Evict a pod, which its PodDisruptionBudget may refuse with 429."""
        meta = pod['metadata']
        self.call('POST', f'{_path(meta)}/eviction', {
            'apiVersion': 'policy/v1', 'kind': 'Eviction',
            'metadata': {'name': meta['name'],
                         'namespace': meta['namespace']},
            'deleteOptions': _delete_options(meta, grace_s)})

    def delete(self, pod, grace_s):
        """Delete a pod, whatever its PodDisruptionBudget is."""
        meta = pod['metadata']
        self.call('DELETE', _path(meta), _delete_options(meta, grace_s))


def _path(meta):
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"


def _delete_options(meta, grace_s):
    # The uid spares a new pod of the same name.
    return {'apiVersion': 'v1', 'kind': 'DeleteOptions',
            'gracePeriodSeconds': grace_s,
            'preconditions': {'uid': meta['uid']}}


def is_left_alone(pod):
    """Return whether draining leaves a pod alone, as kubectl drain does."""
    meta = pod['metadata']
    return (
        any(owner['kind'] == 'DaemonSet' and owner.get('controller')
            for owner in meta.get('ownerReferences', ()))
        or 'kubernetes.io/config.mirror' in meta.get('annotations', {})
        or 'deletionTimestamp' in meta
        or pod.get('status', {}).get('phase') in ('Succeeded', 'Failed'))


class Agent:
    """Keeps a node as the notice of its server demands.

    :param kubernetes: a Kubernetes
    :param node: name of the node
    :param metadata_url: of meta_data.json
    :param reserve_s: how long before the deadline pods are to be gone
    :param force_s: how long before that pods are deleted whose
        PodDisruptionBudget refuses to evict them
    :param drains_migrated: whether to drain a node that is to be migrated
    :param clock: returns the time in seconds since 1970
    """

    def __init__(self, kubernetes, node, metadata_url, reserve_s=5,
                 force_s=10, drains_migrated=True, clock=time.time):
        self._kubernetes = kubernetes
        self._node = node
        self._metadata_url = metadata_url
        self._reserve_s = reserve_s
        self._force_s = force_s
        self._drains_migrated = drains_migrated
        self._clock = clock

    def step(self):
        """Read the notice and bring the node nearer to what it demands.

        :returns: the notice, None if there is none
        :raises OSError, ValueError, KubernetesError: the next step retries
        """
        meta = self._read_metadata()
        notice = _notice(meta)
        node = self._kubernetes.get_node(self._node)
        if notice is None:
            self._welcome(node, self._why_leave(meta))
        else:
            self._close(node, notice)
            if notice['action'] != 'migrate' or self._drains_migrated:
                self._drain(_seconds(notice['deadline']))
        return notice

    def _read_metadata(self):
        """Return the metadata of our server."""
        with urllib.request.urlopen(self._metadata_url,
                                    timeout=TIMEOUT_S) as answer:
            return json.load(answer).get('meta', {})

    def _why_leave(self, meta):
        """Return why our server is recommended to leave, '' if it is not."""
        if 'preemption_recommendation' not in meta:
            return ''
        found = json.loads(meta['preemption_recommendation'])
        return found['reason'] if _seconds(
            found['until']) > self._clock() else ''

    def _welcome(self, node, why_leave):
        """Label the node, and undo what an earlier notice has changed.

        :param why_leave: why its server is recommended to leave, '' if not
        """
        meta, spec = node['metadata'], node['spec']
        labels = meta.get('labels', {})
        annotations = meta.get('annotations', {})
        patch = {'metadata': {}, 'spec': {}}
        if labels.get(LABEL) != 'true':
            patch['metadata']['labels'] = {LABEL: 'true'}
        if NOTICE in annotations:
            LOG.info('The notice is withdrawn, or the server has come back; '
                     'the node takes pods again')
            patch['metadata'] = {
                'labels': {LABEL: 'true', ENDING: None},
                'annotations': {NOTICE: None, CORDONED: None}}
            if CORDONED in annotations:
                patch['spec']['unschedulable'] = None
        taints = _other_taints(spec)
        if why_leave:
            taints.append({'key': LEAVING, 'value': why_leave,
                           'effect': 'PreferNoSchedule'})
        if taints != spec.get('taints', []):
            if why_leave:
                LOG.info('The server is recommended to leave: %s', why_leave)
            patch['spec']['taints'] = taints
        self._patch(node, patch)

    def _close(self, node, notice):
        """Cordon, taint and label a node with notice."""
        meta, spec = node['metadata'], node['spec']
        text = json.dumps(notice, sort_keys=True)
        annotations = meta.get('annotations', {})
        if annotations.get(NOTICE) == text and spec.get('unschedulable'):
            return
        LOG.warning('The server gets the action %(action)s at %(deadline)s: '
                    'preemption %(preemption_id)s', notice)
        changed = {NOTICE: text}
        if not spec.get('unschedulable'):
            # Otherwise somebody else has cordoned it, and that stays.
            changed[CORDONED] = 'true'
        self._patch(node, {
            'metadata': {'labels': {LABEL: 'true',
                                    ENDING: notice['action']},
                         'annotations': changed},
            'spec': {'unschedulable': True, 'taints': [
                *_other_taints(spec),
                {'key': ENDING, 'value': notice['action'],
                 'effect': 'NoSchedule'}]}})

    def _patch(self, node, patch):
        patch = {key: value for key, value in patch.items() if value}
        if patch:
            patch.setdefault('metadata', {})['resourceVersion'] = (
                node['metadata']['resourceVersion'])
            self._kubernetes.patch_node(self._node, patch)

    def _drain(self, deadline_s):
        for pod in self._kubernetes.get_pods(self._node):
            if is_left_alone(pod):
                continue
            left_s = deadline_s - self._reserve_s - self._clock()
            grace_s = max(1, int(min(left_s, pod['spec'].get(
                'terminationGracePeriodSeconds', 30))))
            meta = pod['metadata']
            try:
                self._end(pod, grace_s, left_s <= grace_s + self._force_s)
            except (OSError, KubernetesError) as exc:
                # One that is gone is drained; each other is tried again.
                if getattr(exc, 'status', 0) not in (404, 409):
                    LOG.warning('Pod %s/%s is not evicted yet: %s',
                                meta['namespace'], meta['name'], exc)
            else:
                LOG.info('Pod %s/%s is evicted, with a grace period of %d s',
                         meta['namespace'], meta['name'], grace_s)

    def _end(self, pod, grace_s, is_late):
        """Evict a pod; delete it if that is refused and it is late."""
        try:
            self._kubernetes.evict(pod, grace_s)
        except (OSError, KubernetesError) as exc:
            if getattr(exc, 'status', 0) in (404, 409) or not is_late:
                raise
            self._kubernetes.delete(pod, grace_s)


def _other_taints(spec):
    return [taint for taint in spec.get('taints', ())
            if taint['key'] not in (ENDING, LEAVING)]


def _notice(meta):
    """Return the notice of a server, None if it has none."""
    if 'preemption' not in meta:
        return None
    notice = json.loads(meta['preemption'])
    _seconds(notice['deadline'])
    return {'action': notice['action'], 'deadline': notice['deadline'],
            'preemption_id': notice['preemption_id']}


def _seconds(text):
    """Return the seconds since 1970 of a time like 2026-11-21T21:01:20Z."""
    return datetime.datetime.strptime(text, '%Y-%m-%dT%H:%M:%SZ').replace(
        tzinfo=datetime.timezone.utc).timestamp()


def make_agent(environ):
    """Return the Agent that the environment of the pod configures.

    :raises ValueError: a variable has a wrong value
    """
    def number(name, default):
        value = environ.get(name, default)
        if not value.isdigit():
            raise ValueError(f'{name}={value}: must be a whole number of '
                             'seconds, 0 or more')
        return int(value)

    on_migrate = environ.get('ON_MIGRATE', 'drain')
    if on_migrate not in ('drain', 'cordon'):
        raise ValueError(f'ON_MIGRATE={on_migrate}: must be drain or cordon')
    for name in 'NODE_NAME', 'KUBERNETES_SERVICE_HOST':
        if not environ.get(name):
            raise ValueError(f'{name} must be set')

    def token():
        with open(f'{CREDENTIALS}/token', encoding='utf-8') as file:
            return file.read().strip()

    host = environ['KUBERNETES_SERVICE_HOST']
    host = f'[{host}]' if ':' in host else host
    context = ssl.create_default_context(cafile=f'{CREDENTIALS}/ca.crt')
    # Python 3.13 refuses certificates without key identifiers, as Magnum's.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    kubernetes = Kubernetes(
        f"https://{host}:{environ.get('KUBERNETES_SERVICE_PORT', '443')}",
        token, context)
    return Agent(
        kubernetes, environ['NODE_NAME'], environ.get(
            'METADATA_URL',
            'http://169.254.169.254/openstack/latest/meta_data.json'),
        reserve_s=number('RESERVE_S', '5'), force_s=number('FORCE_S', '10'),
        drains_migrated=on_migrate == 'drain')


def run(agent, interval_s=5, sleep=time.sleep):
    """Step for ever; a failure is logged once, and retried."""
    failed = ''
    while True:
        wait_s = interval_s
        try:
            agent.step()
            failed = ''
        except (OSError, ValueError, KeyError, KubernetesError) as exc:
            if getattr(exc, 'status', 0) == 409:
                # Somebody else has just changed the node.
                wait_s = min(1, interval_s)
            elif repr(exc) != failed:
                LOG.warning('It is tried again every %d s: %r', interval_s,
                            exc)
                failed = repr(exc)
        sleep(wait_s)


if __name__ == '__main__':
    logging.basicConfig(level=logging.INFO,
                        format='%(asctime)s %(levelname)s %(message)s')
    try:
        found = make_agent(os.environ)
    except ValueError as wrong:
        raise SystemExit(f'spot-node-agent: {wrong}') from None
    run(found, int(os.environ.get('INTERVAL_S', '5')))
