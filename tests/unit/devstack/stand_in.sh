#!/bin/bash
#
# SPDX-License-Identifier: Apache-2.0
#
# stand_in.sh - What DevStack promises to plugins, for where it is not at hand
#
# The functions have the names, arguments and effects of those in DevStack's
# functions-common, functions, inc/, lib/apache, lib/database and
# lib/keystone, as far as the plugin uses them.

# shellcheck disable=SC2034  # settings and plugin.sh use what is set here

NOVA_BIN_DIR=$DEVSTACK_VENV/bin
NOVA_SERVICE_PROTOCOL=$SERVICE_PROTOCOL
NOVA_SERVICE_HOST=$SERVICE_HOST
NOVA_FILTERS=ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter
NOVA_FILTERS+=,ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter
NOVA_FILTERS+=,SameHostFilter,DifferentHostFilter
DATABASE_BACKENDS=" mysql postgresql"
DATABASE_TYPE=${DATABASE_TYPE:-mysql}
SERVICE_PROJECT_NAME=service
SERVICE_DOMAIN_NAME=Default
KEYSTONE_SERVICE_URI=$SERVICE_PROTOCOL://$SERVICE_HOST/identity
declare -A PROJECT_VENV

function define_plugin {
    :
}

function echo_summary {
    echo "$@"
}

function die {
    echo "[ERROR] line $1: ${*:2}" >&2
    exit 1
}

# trueorfalse <default> <name of a variable>
function trueorfalse {
    case ${!2} in
        1|[yY]es|YES|[tT]rue|TRUE) echo True;;
        0|[nN]o|NO|[fF]alse|FALSE) echo False;;
        *) echo "$1";;
    esac
}

# is_service_enabled service [service ...]: is one of them
function is_service_enabled {
    local service
    for service in "$@"; do
        if [[ ,$ENABLED_SERVICES, == *,$service,* ]]; then
            return 0
        fi
    done
    return 1
}

# enable_service service [service ...]: if nobody has disabled it
function enable_service {
    local service
    for service in "$@"; do
        if [[ ,$DISABLED_SERVICES,$ENABLED_SERVICES, != *,$service,* ]]; then
            ENABLED_SERVICES+=,$service
        fi
    done
}

# _ini_has_option line option: does the line give the option a value
function _ini_has_option {
    [[ "$1" =~ ^$2[[:blank:]]*= ]]
}

# _ini_write place|top file section option line...
function _ini_write {
    local how=$1
    local file=$2
    local header=[$3]
    local option=$4
    local new=("${@:5}")
    local written=()
    local here=False
    local found=False
    local old=()
    local line
    if [[ -e "$file" ]]; then
        mapfile -t old < "$file"
    fi
    for line in "${old[@]}"; do
        if [[ "$line" == "["* ]]; then
            here=False
        fi
        if [[ $here == True ]] && _ini_has_option "$line" "$option"; then
            if [[ $how == place ]]; then
                written+=("${new[@]}")
            fi
            continue
        fi
        written+=("$line")
        if [[ "$line" == "$header" ]]; then
            here=True
            found=True
            if [[ $how == top ]]; then
                written+=("${new[@]}")
            fi
        fi
    done
    if [[ $found == False ]]; then
        written+=("" "$header" "${new[@]}")
    fi
    printf '%s\n' "${written[@]}" > "$file"
}

# iniget_multiline file section option: its values, with spaces between them
function iniget_multiline {
    local here=False
    local values=()
    local line
    while read -r line; do
        if [[ "$line" == "["* ]]; then
            here=False
        fi
        if [[ "$line" == "[$2]" ]]; then
            here=True
        elif [[ $here == True ]] && _ini_has_option "$line" "$3"; then
            line=${line#*=}
            values+=("${line# }")
        fi
    done < "$1"
    echo "${values[*]}"
}

function iniget {
    iniget_multiline "$@"
}

function ini_has_option {
    [[ -n $(iniget_multiline "$@") ]]
}

# iniset file section option value: in its place, or at the section's top
function iniset {
    local how=top
    if [[ -e $1 ]] && ini_has_option "$1" "$2" "$3"; then
        how=place
    fi
    _ini_write $how "$1" "$2" "$3" "$3 = $4"
}

# iniset_multiline file section option value...: always at the section's top
function iniset_multiline {
    local lines=("${@:4}")
    _ini_write top "$1" "$2" "$3" "${lines[@]/#/$3 = }"
}

# setup_develop project_dir [extras]: in $PIP_VIRTUAL_ENV if that is set
function setup_develop {
    "${PIP_VIRTUAL_ENV:-$DEVSTACK_VENV}/bin/pip" install \
        -c "$REQUIREMENTS_DIR/upper-constraints.txt" -e "$1${2:+[$2]}"
}

function recreate_database {
    mysql -uroot "-p$DATABASE_PASSWORD" -h127.0.0.1 \
        -e "DROP DATABASE IF EXISTS $1;"
    mysql -uroot "-p$DATABASE_PASSWORD" -h127.0.0.1 \
        -e "CREATE DATABASE $1 CHARACTER SET utf8;"
}

function database_connection_url {
    echo "mysql+pymysql://root:$DATABASE_PASSWORD@127.0.0.1/$1?charset=utf8"
}

# configure_keystoneauth conf_file admin_user section
function configure_keystoneauth {
    iniset "$1" "$3" auth_type password
    iniset "$1" "$3" interface public
    iniset "$1" "$3" auth_url "$KEYSTONE_SERVICE_URI"
    iniset "$1" "$3" username "$2"
    iniset "$1" "$3" password "$SERVICE_PASSWORD"
    iniset "$1" "$3" user_domain_name "$SERVICE_DOMAIN_NAME"
    iniset "$1" "$3" project_name "$SERVICE_PROJECT_NAME"
    iniset "$1" "$3" project_domain_name "$SERVICE_DOMAIN_NAME"
}

# create_service_user name [role]
function create_service_user {
    local role
    openstack user create "$1" --password "$SERVICE_PASSWORD" \
        --domain "$SERVICE_DOMAIN_NAME" --or-show
    for role in service $2; do
        openstack role add "$role" --user "$1" \
            --project "$SERVICE_PROJECT_NAME"
    done
}

# get_or_create_service name type description
function get_or_create_service {
    openstack service show "$2" ||
        openstack service create "$2" --name "$1" --description="$3"
}

# get_or_create_endpoint service region publicurl [adminurl] [internalurl]
function get_or_create_endpoint {
    local interface
    local url=([0]=$3 [1]=$4 [2]=$5)
    for interface in public admin internal; do
        if [[ -n "${url[0]}" && -z $(openstack endpoint list --service "$1" \
            --interface $interface --region "$2") ]]; then
            openstack endpoint create "$1" $interface "${url[0]}" \
                --region "$2"
        fi
        url=("${url[@]:1}")
    done
}

function apache_site_config_for {
    echo "$APACHE_CONF_DIR/$1.conf"
}

# write_uwsgi_config conf wsgi url http [name]: it appends to the site
function write_uwsgi_config {
    rm -f "$1"
    iniset "$1" uwsgi module "$2"
    iniset "$1" uwsgi processes "$API_WORKERS"
    iniset "$1" uwsgi master true
    iniset "$1" uwsgi die-on-term true
    iniset "$1" uwsgi enable-threads true
    iniset "$1" uwsgi buffer-size 65535
    iniset "$1" uwsgi add-header "Connection: close"
    iniset "$1" uwsgi lazy-apps true
    if [[ -n "$4" ]]; then
        iniset "$1" uwsgi http "$4"
        return
    fi
    local socket=/var/run/uwsgi/$5.socket
    iniset "$1" uwsgi socket "$socket"
    echo "ProxyPass \"$3\" \"unix:$socket|uwsgi://uwsgi-uds-$5\" retry=0" |
        sudo tee -a "$(apache_site_config_for "$5")" > /dev/null
    sudo a2ensite "$5"
}

# remove_uwsgi_config conf name
function remove_uwsgi_config {
    rm -f "$1"
    sudo a2dissite "$2"
}

# run_process service command [group] [user] [env_vars]: as the unit
# devstack@service, if it is enabled
function run_process {
    local unit=devstack@$1.service
    if is_service_enabled "$1"; then
        iniset "$SYSTEMD_DIR/$unit" Service Environment "${5:-\"PATH=$PATH\"}"
        iniset "$SYSTEMD_DIR/$unit" Service ExecStart "$2"
        sudo systemctl enable "$unit"
        sudo systemctl start "$unit"
    fi
}

function stop_process {
    local unit=devstack@$1.service
    if is_service_enabled "$1" && sudo systemctl is-enabled "$unit"; then
        sudo systemctl stop "$unit"
        sudo systemctl disable "$unit"
    fi
}

# wait_for_service timeout url
function wait_for_service {
    timeout "$1" bash -c "until curl -s '$2'; do sleep 1; done"
}

# What DevStack's own libraries do before and between the plugin's phases.

function create_nova_conf {
    rm -f "$NOVA_CONF"
    iniset "$NOVA_CONF" DEFAULT debug True
    iniset "$NOVA_CONF" filter_scheduler enabled_filters "$NOVA_FILTERS"
    iniset "$NOVA_CONF" filter_scheduler track_instance_changes False
    configure_keystoneauth "$NOVA_CONF" nova keystone_authtoken
}

function create_placement_conf {
    rm -f "$PLACEMENT_CONF"
    iniset "$PLACEMENT_CONF" placement_database connection \
        "$(database_connection_url placement)"
}

function start {
    run_process n-sch "$NOVA_BIN_DIR/nova-scheduler --config-file $NOVA_CONF"
}
