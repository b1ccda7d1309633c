# SPDX-License-Identifier: Apache-2.0
"""A stand-in of the Kubernetes API, over HTTP, with one node and its pods.

It knows the calls of examples/kubernetes, allows what the ClusterRole of the
manifest allows, and refuses a patch by an old resourceVersion.
"""

import http.server
import json
import pathlib
import re
import threading
import urllib.parse

import yaml

EXAMPLES = pathlib.Path(__file__).parents[1] / 'examples/kubernetes'
TOKEN = 'token-of-the-agent'
POD = re.compile(r'/api/v1/namespaces/([^/]+)/pods/([^/]+)(/eviction)?$')


def manifests(name):
    """Return the documents of a file of examples/kubernetes."""
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def _allowed():
    """Return {(resource, verb)} that the ClusterRole of the agent allows."""
    role, = (each for each in manifests('spot-node-agent.yaml')
             if each['kind'] == 'ClusterRole')
    return {(resource, verb) for rule in role['rules']
            for resource in rule['resources'] for verb in rule['verbs']}


def merge(target, patch):
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


class KubernetesAPI:
    """Serves one node.

    :ivar node: the Node as a dict
    :ivar pods: {name: the Pod as a dict}
    :ivar protected: names of pods whose PodDisruptionBudget allows no eviction
    :ivar ended: [(name, verb, gracePeriodSeconds)]
    """

    def __init__(self, name='node1'):
        self.node = {'kind': 'Node', 'spec': {}, 'metadata': {
            'name': name, 'resourceVersion': '1'}}
        self.pods = {}
        self.protected = set()
        self.ended = []
        self.before_patch = lambda: None
        self._allowed = _allowed()
        self._server = http.server.ThreadingHTTPServer(
            ('127.0.0.1', 0), self._handler())
        self.url = f'http://127.0.0.1:{self._server.server_port}'
        threading.Thread(target=self._server.serve_forever, args=(0.01,),
                         daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def add_pod(self, name, grace_s=30, owner='ReplicaSet', **values):
        """Add a pod to the node.

        :param values: further items of the Pod, or of its metadata
        """
        meta = {'name': name, 'namespace': 'default', 'uid': f'uid-{name}',
                'ownerReferences': [{'kind': owner, 'controller': True}]}
        status = values.pop('status', {'phase': 'Running'})
        self.pods[name] = {
            'metadata': meta | values, 'status': status,
            'spec': {'nodeName': self.node['metadata']['name'],
                     'terminationGracePeriodSeconds': grace_s}}

    def touch(self):
        """Change the node as its kubelet does."""
        meta = self.node['metadata']
        meta['resourceVersion'] = str(int(meta['resourceVersion']) + 1)

    def _handler(self):
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def __getattr__(self, name):
                # http.server calls do_GET() and the like.
                if name.startswith('do_'):
                    return self._serve
                raise AttributeError(name)

            def _serve(self):
                length = int(self.headers.get('Content-Length') or 0)
                body = json.loads(self.rfile.read(length) or 'null')
                status, answer = api.answer(
                    self.command, self.path, self.headers, body)
                text = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header('Content-Length', str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        return Handler

    def answer(self, method, path, headers, body):
        """Return (HTTP status, body) for a request."""
        if headers['Authorization'] != f'Bearer {TOKEN}':
            return 401, {'message': 'Unauthorized'}
        url = urllib.parse.urlsplit(path)
        node = f"/api/v1/nodes/{self.node['metadata']['name']}"
        pod = POD.match(url.path)
        if url.path == node and method == 'GET':
            return self._if_allowed('nodes', 'get', lambda: (200, self.node))
        if url.path == node and method == 'PATCH':
            return self._if_allowed('nodes', 'patch', lambda: self._patch(
                headers['Content-Type'], body))
        if url.path == '/api/v1/pods' and method == 'GET':
            return self._if_allowed('pods', 'list', lambda: self._list(
                urllib.parse.parse_qs(url.query)))
        if pod and pod[3] and method == 'POST':
            return self._if_allowed('pods/eviction', 'create',
                                    lambda: self._evict(pod[2], body))
        if pod and not pod[3] and method == 'DELETE':
            return self._if_allowed('pods', 'delete', lambda: self._end(
                pod[2], 'delete', body))
        return 404, {'message': f'the server has no {method} {path}'}

    def _if_allowed(self, resource, verb, function):
        if (resource, verb) not in self._allowed:
            return 403, {'message': f'cannot {verb} {resource}'}
        return function()

    def _patch(self, content_type, patch):
        if content_type != 'application/merge-patch+json':
            return 415, {'message': content_type}
        self.before_patch()
        now = self.node['metadata']['resourceVersion']
        if patch['metadata'].get('resourceVersion', now) != now:
            return 409, {'message': 'the object has been modified'}
        self.node = merge(self.node, patch)
        self.touch()
        return 200, self.node

    def _list(self, query):
        if query != {'fieldSelector': [
                f"spec.nodeName={self.node['metadata']['name']}"]}:
            return 400, {'message': f'unknown query {query}'}
        return 200, {'items': list(self.pods.values())}

    def _evict(self, name, body):
        if (body['apiVersion'], body['kind']) != ('policy/v1', 'Eviction'):
            return 400, {'message': 'not an Eviction'}
        if name in self.protected:
            return 429, {'message': 'Cannot evict pod as it would violate '
                                    "the pod's disruption budget."}
        return self._end(name, 'evict', body['deleteOptions'])

    def _end(self, name, verb, options):
        pod = self.pods.get(name)
        if pod is None:
            return 404, {'message': f'pods "{name}" not found'}
        if options['preconditions']['uid'] != pod['metadata']['uid']:
            return 409, {'message': 'the UID in the precondition does not '
                                    'match'}
        pod['metadata']['deletionTimestamp'] = 'now'
        self.ended.append((name, verb, options['gracePeriodSeconds']))
        return 201, {'status': 'Success'}
