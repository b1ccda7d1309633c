# SPDX-License-Identifier: Apache-2.0
"""Pages of lists, and parameters that several operations share."""

import re
import urllib.parse

import webob.exc

from nova_preempt.api import request_validation
from nova_preempt.api import schemas

#: The most items that one page of a list has, as in Nova.
MOST_ITEMS = 1000


def name(call, parameter, what):
    """Return a name from the path; 404 if the name is invalid."""
    try:
        text = call.path[parameter].encode('latin-1').decode('utf-8')
    except UnicodeError:
        text = ''
    if not re.search(schemas.TEXT['pattern'][:-1] + r'\Z', text) or len(
            text) > schemas.TEXT['maxLength']:
        raise webob.exc.HTTPNotFound(f'There is no {what} {text!r:.80}.')
    return text


def unknown_marker(what, marker):
    """Return the error for a marker that is not the id of an object."""
    return webob.exc.HTTPBadRequest("Invalid query parameter 'marker': there "
                                    f'is no {what} {marker!r:.80}.')


def listed_project(call, rule, *more):
    """Return the project whose objects are listed, None for all projects.

    :param rule: the policy rule for other projects
    :param more: names of parameters that need the rule as well
    """
    project_id = call.query.get('project_id')
    everywhere = call.query.get('all_projects')
    if everywhere or call.query.keys() & {'project_id', *more}:
        # The rule is checked for the one project, if there is one.
        call.require(rule, project_id and (project_id, ''))
    return (project_id if project_id is not None or everywhere
            else call.context.project_id)


def limit(call):
    """Return the largest number of items of a page."""
    return min(call.query.get('limit', MOST_ITEMS), MOST_ITEMS)


def interval(call):
    """Return {'since', 'until': naive UTC datetime} as far as given."""
    return {name: request_validation.parse_time(call.query[name])
            for name in ('since', 'until') if name in call.query}


def page(call, name, found, view, key):
    """Return a page as JSON, with a link to the next page if there is one.

    :param name: of the items
    :param found: at most limit() items, and one more if there are more
    :param view: returns an item as JSON
    :param key: returns the marker of an item
    """
    size = limit(call)
    answer = {name: [view(item) for item in found[:size]]}
    if len(found) > size:
        answer[f'{name}_links'] = [
            {'rel': 'next', 'href': _next(call, key(found[size - 1]))}]
    return answer


def _next(call, marker):
    pairs = [pair for pair in urllib.parse.parse_qsl(
        call.request.query_string) if pair[0] != 'marker']
    text = urllib.parse.urlencode([*pairs, ('marker', marker)])
    return f'{call.request.path_url}?{text}'
