#!/bin/bash
# SPDX-License-Identifier: Apache-2.0

# Render the examples of etc/kolla-ansible with kolla-ansible's own role.
#
# Usage: render.sh PYTHON DIRECTORY
#
# Installs kolla-ansible into DIRECTORY/venv and renders nova.conf of the
# scheduler into DIRECTORY/kolla. Then runs our playbook, whose last task fails
# where there is no Docker; its files are in /etc/kolla.

set -eu

python=$1
mkdir -p "$2"
directory=$(cd "$2" && pwd)
top=$(cd "$(dirname "$0")/../.." && pwd)

"$python" -m venv "$directory/venv"
"$directory/venv/bin/pip" install --quiet --no-compile \
    kolla-ansible ansible netaddr
kolla=$directory/venv/share/kolla-ansible
ours=$top/etc/kolla-ansible

# Ansible looks for these beside the playbooks.
ln -sfn "$kolla/ansible/group_vars" "$directory/group_vars"
ln -sfn "$kolla/ansible/roles" "$directory/roles"
cp "$top/tools/kolla/render.yml" "$ours/nova-preempt.yml" "$directory"
sed "s#ansible_connection=local#& \
ansible_python_interpreter=$directory/venv/bin/python#" \
    "$kolla/ansible/inventory/all-in-one" >"$directory/inventory"
# All passwords that have no keys of their own are the same.
sed -E 's/^([a-z_0-9]+_(password|key|secret|id)):[[:space:]]*$/\1: secret/;
        s/^nova_ssh_key: secret$/nova_ssh_key:/;
        s/^([a-z_]+_ssh_key): secret$/\1:/' \
    "$kolla/etc_examples/kolla/passwords.yml" >"$directory/passwords.yml"
echo 'nova_preempt_database_password: secret' >>"$directory/passwords.yml"

export ANSIBLE_ACTION_PLUGINS=$kolla/ansible/action_plugins
export ANSIBLE_FILTER_PLUGINS=$kolla/ansible/filter_plugins
export ANSIBLE_LIBRARY=$kolla/ansible/library
export ANSIBLE_MODULE_UTILS=$kolla/ansible/module_utils
export PATH=$directory/venv/bin:$PATH
play() {
    ansible-playbook --inventory "$directory/inventory" \
        --extra-vars "@$directory/passwords.yml" \
        --extra-vars "@$kolla/ansible/roles/nova/defaults/main.yml" \
        --extra-vars "@$ours/globals.yml" \
        --extra-vars "kolla=$kolla/ansible ours=$ours \
kolla_internal_vip_address=127.0.0.1 api_interface_address=127.0.0.1 \
kolla_base_distro=debian openstack_release=2026.1" "$@"
}

cd "$directory"
play --extra-vars "node_config_directory=$directory/kolla" render.yml
mkdir -p /etc/kolla/nova-scheduler
cp "$directory/kolla/nova-scheduler/nova.conf" /etc/kolla/nova-scheduler/
play nova-preempt.yml
