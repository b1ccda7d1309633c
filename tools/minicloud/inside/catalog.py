# SPDX-License-Identifier: Apache-2.0
"""Create users, projects and the catalog; keep existing ones.

Usage: catalog.py JSON, which is {"users": {name: [project, role...]},
"services": {type: [name, url]}, "region": ..., "password": ...}.
"""

import json
import sys

import openstack


def main():
    wanted = json.loads(sys.argv[1])
    identity = openstack.connect(cloud='minicloud-admin').identity
    projects = {project.name: project for project in identity.projects()}
    roles = {role.name: role for role in identity.roles()}
    users = {user.name: user for user in identity.users()}
    for name, (project, *names) in wanted['users'].items():
        if project not in projects:
            projects[project] = identity.create_project(
                name=project, domain_id='default')
        user = users.get(name) or identity.create_user(
            name=name, password=wanted['password'], domain_id='default')
        for role in names:
            identity.assign_project_role_to_user(
                projects[project], user, roles[role])
    _make_services(identity, wanted['services'], wanted['region'])


def _make_services(identity, wanted, region):
    services = {service.type: service for service in identity.services()}
    endpoints = {(endpoint.service_id, endpoint.interface)
                 for endpoint in identity.endpoints()}
    for service_type, (name, url) in wanted.items():
        service = services.get(service_type) or identity.create_service(
            name=name, type=service_type)
        for interface in ('public', 'internal', 'admin'):
            if (service.id, interface) not in endpoints:
                identity.create_endpoint(
                    service_id=service.id, interface=interface, url=url,
                    region_id=region)


if __name__ == '__main__':
    main()
