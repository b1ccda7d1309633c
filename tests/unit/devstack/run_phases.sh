#!/bin/bash
#
# SPDX-License-Identifier: Apache-2.0
#
# run_phases.sh - Run phases of the DevStack plugin as stack.sh would
#
# run_phases.sh step...
#
# A step is mode:phase of a plugin, or "configure" or "start", what DevStack
# itself does in between: write nova.conf and placement.conf, start nova's
# services. After "load:", no phase, it may be a function of the plugin. $ROOT
# is a directory in which everything happens, $REPO the repository. With
# $DEVSTACK_DIR it is DevStack that does it, else a stand-in. $SITE is a file
# of what is otherwise where it happens.

# shellcheck disable=SC1090,SC1091,SC2034  # the files of DevStack and what they use

set -o errexit

# What stackrc, local.conf and stack.sh would have set.
export PATH=$ROOT/bin:$PATH
DEST=$ROOT/opt/stack
DATA_DIR=$DEST/data
DEVSTACK_VENV=$DATA_DIR/venv
GLOBAL_VENV=True
REQUIREMENTS_DIR=$DEST/requirements
SYSTEMD_DIR=$ROOT/etc/systemd/system
SYSTEMCTL="sudo systemctl"
STACK_USER=$(id -un)
APACHE_CONF_DIR=$ROOT/etc/apache2/sites-available
ENABLED_SERVICES=${ENABLED_SERVICES:-key,n-api,n-sch,placement-api,mysql}
ENABLED_SERVICES+=,rabbit,tempest
SERVICE_HOST=192.0.2.1
SERVICE_LOCAL_HOST=127.0.0.1
SERVICE_LISTEN_ADDRESS=0.0.0.0
SERVICE_IP_VERSION=4
HOST_IP=192.0.2.1
SERVICE_PROTOCOL=http
SERVICE_PASSWORD=secret
SERVICE_TIMEOUT=5
SERVICE_GRACEFUL_SHUTDOWN_TIMEOUT=5
REGION_NAME=RegionOne
MYSQL_DRIVER=PyMySQL
DATABASE_PASSWORD=secret
RABBIT_USERID=stackrabbit
RABBIT_PASSWORD=secret
RABBIT_HOST=192.0.2.1
API_WORKERS=2
WORKER_TIMEOUT=80
CELLSV2_SETUP=superconductor
VIRT_DRIVER=fake
NUMBER_FAKE_NOVA_COMPUTE=1
SYSLOG=False
ENABLE_DEBUG_LOG_LEVEL=True
LOG_COLOR=False
MEMCACHE_SERVERS=localhost:11211
CACHE_BACKEND=dogpile.cache.memcached
SSL_BUNDLE_FILE=$DATA_DIR/ca-bundle.pem
PUBLIC_NETWORK_NAME=public
NOVA_ENABLED_APIS=osapi_compute,metadata
INSTANCE_NAME_PREFIX=instance-
TEMPEST_DIR=$DEST/tempest
TEMPEST_CONFIG=$TEMPEST_DIR/etc/tempest.conf
export CURL_GET=curl

if [[ -n "$DEVSTACK_DIR" ]]; then
    TOP_DIR=$DEVSTACK_DIR
    FILES=$TOP_DIR/files
    # What it runs on does not matter.
    os_VENDOR=Debian os_PACKAGE=deb os_RELEASE=13 os_CODENAME=trixie
    DISTRO=trixie
    source "$TOP_DIR/functions"
    source "$TOP_DIR/lib/database"
    if initialize_database_backends; then
        define_database_baseurl
    fi
    for lib in rpc_backend apache tls keystone nova placement; do
        source "$TOP_DIR/lib/$lib"
    done
    function start {
        start_nova_rest
    }
else
    source "$REPO/tests/unit/devstack/stand_in.sh"
fi
NOVA_CONF_DIR=$ROOT/etc/nova
NOVA_CONF=$NOVA_CONF_DIR/nova.conf
NOVA_COND_CONF=$NOVA_CONF
NOVA_API_PASTE_INI=$NOVA_CONF_DIR/api-paste.ini
NOVA_UWSGI_CONF=$NOVA_CONF_DIR/nova-api-uwsgi.ini
NOVA_METADATA_UWSGI_CONF=$NOVA_CONF_DIR/nova-metadata-uwsgi.ini
PLACEMENT_CONF=$ROOT/etc/placement/placement.conf

if [[ -n "$SITE" ]]; then
    source "$SITE"
fi

function configure {
    create_nova_conf
    create_placement_conf
}

source "$REPO/devstack/settings"
for step in "$@"; do
    if [[ "$step" == *:* ]]; then
        source "$REPO/devstack/plugin.sh" "${step%%:*}" "${step#*:}"
    else
        "$step"
    fi
done
echo "$ENABLED_SERVICES" > "$ROOT/enabled_services"
