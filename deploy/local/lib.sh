# SPDX-License-Identifier: Apache-2.0
# What up and down share: the data folder's layout, the processes and their pid files.
#   $DATA/etc    configuration and passwords (one file per service)      $DATA/bin   the programs
#   $DATA/run    pid files, sockets, nginx/                              $DATA/log   one log per process
#   $DATA/postgres  $DATA/nats  $DATA/mail   their data     $DATA/objects, $DATA/assets, or $DATA/s3   what is archived; template assets
# Each process runs as a system user of its own, stentor-NAME, which reads its own configuration alone; who seals or opens
# personal data is in the group stentor-keys, which reads the master key. $DATA/assets is the gateway's, for the group stentor-files to read: the
# dispatcher, which puts attachments into mails.
DATA=${STENTOR_DATA:-/var/lib/stentor}
KEYS_GROUP=stentor-keys
FILES_GROUP=stentor-files
LOG_BYTES=16777216
SERVERS="postgres nats mailbox vendor doubles nginx s3"
# outbox-relay is the demo application's; the others are the pipeline's.
SERVICES="outbox-relay ingest gateway order-saga renderer dispatcher archiver digest-flusher webhook-receiver webhook"

say() { [ "${QUIET:-0}" = 1 ] || printf '%s\n' "$*"; }
die() { printf "%s: %s\n" "$(basename "$0")" "$*" >&2; exit 1; }

# The environment goes over a file of settings, and what the caller's shell says (a tenant, a key, another installation's address) is not
# meant for this installation: its own files count.
forget_callers_settings() {
    local setting
    for setting in "${!STENTOR_@}"; do
        [ "$setting" = STENTOR_DATA ] || unset "$setting"
    done
}

# Is the process of this pid file the one we started? The command line must still name our program.
running() { # NAME PROGRAM
    local pid
    pid=$(cat "$DATA/run/$1.pid" 2>/dev/null) || return 1
    [ -n "$pid" ] && [ -r "/proc/$pid/cmdline" ] && { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qF -- "$2"
}

user_of() { echo "stentor-$1"; } # PROCESS

make_user() { # PROCESS
    local user
    user=$(user_of "$1")
    getent group "$user" >/dev/null || groupadd --system "$user"
    getent passwd "$user" >/dev/null ||
        useradd --system --gid "$user" --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin "$user"
}

# PROCESS needs the master key. Whoever runs already gets the group with its next start.
let_read_keys() { # PROCESS
    getent group "$KEYS_GROUP" >/dev/null || groupadd --system "$KEYS_GROUP"
    usermod --append --groups "$KEYS_GROUP" "$(user_of "$1")"
}

# What the gateway stores there (attachments, assets) PROCESS reads, too (common/storage: a folder with mode 2750).
share_assets() { # PROCESS
    getent group "$FILES_GROUP" >/dev/null || groupadd --system "$FILES_GROUP"
    usermod --append --groups "$FILES_GROUP" "$(user_of "$1")"
    install -d -o "$(user_of gateway)" -g "$FILES_GROUP" -m 2750 "$DATA/assets"
}

as_user_of() { # PROCESS COMMAND...
    local user
    user=$(user_of "$1")
    shift
    (cd "$DATA" && exec setpriv --reuid "$user" --regid "$user" --init-groups "$@")
}

# Puts standard input into a file of $DATA/etc that root writes and this group alone reads, whole or not at all.
put_private() { # FILE GROUP
    (umask 077 && cat >"$DATA/etc/.new")
    chown "root:$2" "$DATA/etc/.new"
    chmod 640 "$DATA/etc/.new"
    mv "$DATA/etc/.new" "$DATA/etc/$1"
}

# The same of a file that an operator may change: one that is not what `up` wrote the last time stays, and `up` says so. $DATA/etc/sums has
# a line NAME=SUM of each.
put_unless_changed() { # FILE GROUP
    local file="$DATA/etc/$1" sums="$DATA/etc/sums" known=""
    (umask 077 && cat >"$DATA/etc/.fresh")
    touch "$sums"
    ! grep -qs "^$1=" "$sums" || known=yes
    if [ -e "$file" ] && ! cmp -s "$DATA/etc/.fresh" "$file" && ! grep -qxF "$1=$(sum_of "$file")" "$sums"; then
        if [ -n "$known" ]; then
            say "$file stays as you changed it (delete it, and the next up writes it again)"
            rm -f "$DATA/etc/.fresh"
            return 0
        fi
        # An installation of before has no sums, so the file may be changed or not: it is kept under another name.
        mv "$file" "$file.before"
        say "$file is written again; as it was: $file.before"
    fi
    # Until the file is written both sums are known: whoever is killed in between finds the file as our own.
    echo "$1=$(sum_of "$DATA/etc/.fresh")" >>"$sums"
    put_private "$1" "$2" <"$DATA/etc/.fresh"
    { grep -v "^$1=" "$sums" || true; echo "$1=$(sum_of "$file")"; } >"$sums.new"
    mv "$sums.new" "$sums"
    rm -f "$DATA/etc/.fresh"
}

sum_of() { cksum <"$1" | cut -d' ' -f1; } # FILE

# Does the dispatcher hand its mails to the mailbox at PORT, and not to a mail server that the operator put into its settings?
sends_to_mailbox() { # PORT
    grep -qE "^STENTOR_SMTP_URL=\"?smtp://127\.0\.0\.1:$1/?\"?\$" "$DATA/etc/dispatcher.conf"
}

# ---- the command on the PATH ----

# May PROGRAM, the command of this installation, stand at LINK? Not where it is another installation's that is still there, or not a link
# of ours at all.
may_link() { # PROGRAM LINK
    [ ! -e "$2" ] || [ "$(readlink "$2" 2>/dev/null)" = "$1" ] ||
        { grep -qs "written by deploy/local/up" "$2" && grep -qsF "$DATA/etc/cli.conf" "$2"; }
}

# ---- the users' own settings: ~USER/.config/stentor/config, which `stentor` reads by itself ----

# Who gets them: root, and who called sudo.
persons() {
    id -un
    [ -z "${SUDO_USER:-}" ] || [ "$SUDO_USER" = "$(id -un)" ] || ! getent passwd "$SUDO_USER" >/dev/null || echo "$SUDO_USER"
}

# Runs a script as USER, in whose home root must not follow what that user put there. A home of the caller's environment that is another
# user's (sudo -E) does not count either.
as_person() { # USER SCRIPT WORDS...
    local user=$1 script=$2 home
    shift 2
    home=$(getent passwd "$user" | cut -d: -f6)
    if [ "$user" != "$(id -un)" ]; then
        setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups env -i PATH="$PATH" HOME="$home" sh -euc "$script" sh "$@"
    elif [ -n "${HOME:-}" ] && [ -O "$HOME" ]; then
        sh -euc "$script" sh "$@"
    else
        env -u XDG_CONFIG_HOME HOME="$home" sh -euc "$script" sh "$@"
    fi
}

# Is $file what some `up` wrote? Its first line sums up the rest, so that a file which was changed stays as it is.
USER_CONFIG='
    file=${XDG_CONFIG_HOME:-$HOME/.config}/stentor/config
    is_ours() {
        [ "$(sed -n "1s/^# written by deploy\/local\/up of .*, sum \([0-9]*\):.*/\1/p" "$file")" = "$(sed 1d "$file" | cksum | cut -d" " -f1)" ]
    }'

# Standard input becomes the settings of USER, unless there are others than those of an `up`.
put_user_config() { # USER
    as_person "$1" "$USER_CONFIG"'
        [ ! -e "$file" ] || is_ours || { echo "$file is not what deploy/local/up wrote" >&2; exit 3; }
        of=$(sed -n "1s/^# written by deploy\/local\/up of \(.*\), sum .*/\1/p" "$file" 2>/dev/null || true)
        [ -z "$of" ] || [ "$of" = "$1" ] || [ ! -e "$of/etc/ports" ] || { echo "$file is for the installation $of" >&2; exit 3; }
        umask 077
        mkdir -p "$(dirname "$file")"
        cat >"$file.new"
        { echo "# written by deploy/local/up of $1, sum $(cksum <"$file.new" | cut -d" " -f1): replaced and removed with it unless changed"
          cat "$file.new"; } >"$file.newer"
        rm -f "$file.new"
        mv "$file.newer" "$file"' "$DATA"
}

# Takes them away again, when they are still what the `up` of this folder wrote.
drop_user_config() { # USER
    as_person "$1" "$USER_CONFIG"'
        [ -e "$file" ] && is_ours && [ "$(sed -n "1s/^# written by deploy\/local\/up of \(.*\), sum .*/\1/p" "$file")" = "$1" ] || exit 0
        rm -f "$file"
        rmdir "$(dirname "$file")" 2>/dev/null || true' "$DATA"
}

# A folder that is new or comes from a backup becomes its process's, with everything in it.
give() { # FOLDER PROCESS
    [ "$(stat -c %U "$DATA/$1")" = "$(user_of "$2")" ] || chown -R "$(user_of "$2"):" "$DATA/$1"
}

# The folders, each server's data its own. What an installation from before had in the name of one user is given to those
# whom it belongs to; everything is stopped for that, once.
make_folders() {
    local name
    mkdir -p "$DATA"/{etc,bin,run,log,postgres,nats,mail/tmp,mail/new,mail/cur,vendor,doubles,objects,assets,s3}
    if [ ! -e "$DATA/etc/users" ]; then
        for name in $SERVICES; do
            stop "$name" "stentor-$name"
        done
        stop mailbox aiosmtpd
        stop nats nats-server
        stop postgres postgres INT
        chown -R root: "$DATA"/{etc,run,log}
    fi
    give postgres postgres
    give nats nats
    give mail mailbox
    give vendor vendor
    give doubles doubles
    give objects archiver
    give assets gateway
    give s3 s3
    chown root: "$DATA" "$DATA"/{etc,bin,run,log}
    chmod 711 "$DATA" "$DATA"/{etc,run,log}
    chmod 755 "$DATA/bin"
    chmod 700 "$DATA"/{postgres,nats,mail,vendor,doubles,objects,s3}
    for name in postgres nginx; do
        install -d -o "$(user_of "$name")" -g "$(user_of "$name")" -m 700 "$DATA/run/$name"
    done
    touch "$DATA/etc/users"
}

# A process that goes on behind us holds nothing of the caller's: a lock or a pipe would stay open as long as it runs.
close_inherited() {
    local fd
    for fd in "/proc/$BASHPID/fd/"*; do
        fd=${fd##*/}
        # 255 is bash's own and ends with exec.
        [ "$fd" -le 2 ] || [ "$fd" = 255 ] || eval "exec $fd>&-"
    done
}

start() { # NAME COMMAND...
    local name=$1
    shift
    running "$name" "$(basename "$1")" && return 0
    touch "$DATA/log/$name.log"
    chown "$(user_of "$name"):" "$DATA/log/$name.log"
    chmod 600 "$DATA/log/$name.log"
    (umask 077 && cd "$DATA" && close_inherited && exec setsid setpriv --reuid "$(user_of "$name")" --regid "$(user_of "$name")" --init-groups "$@" \
        >>"$DATA/log/$name.log" 2>&1 </dev/null) &
    echo $! >"$DATA/run/$name.pid"
}

# A log over BYTES begins again; its last BYTES become NAME.log.1, in the place of those before. The processes append, so none of them needs
# to know; what one writes between the copy and the cut is lost.
trim_logs() { # BYTES
    local log
    for log in "$DATA"/log/*.log; do
        [ -f "$log" ] && [ "$(stat -c %s "$log")" -gt "$1" ] || continue
        (umask 077 && tail -c "$1" "$log" >"$log.1")
        : >"$log"
    done
}

# As root, for each log is its process's own.
keep_logs() { # PROGRAM
    running logs "$1" && return 0
    (cd "$DATA" && close_inherited && exec setsid "$1" >/dev/null 2>"$DATA/log/logs.log" </dev/null) &
    echo $! >"$DATA/run/logs.pid"
}

# SIGTERM, then wait for the drain; SIGKILL only after 30 s.
stop() { # NAME PROGRAM [SIGNAL]
    running "$1" "$2" || { rm -f "$DATA/run/$1.pid"; return 0; }
    local pid tries=0
    pid=$(cat "$DATA/run/$1.pid")
    kill -"${3:-TERM}" "$pid" 2>/dev/null || true
    # Not kill -0: a process that ended and is not reaped yet (a container's slow init) still has its number.
    while running "$1" "$2" && [ $tries -lt 300 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    ! running "$1" "$2" || kill -KILL "$pid" 2>/dev/null || true
    rm -f "$DATA/run/$1.pid"
}

port_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# The port that NAME had the last time, unless a stranger listens there now; else the first free one from START on.
# Remembered in $DATA/etc/ports.
choose_port() { # NAME START PROCESS PROGRAM
    local port
    port=$(sed -n "s/^$1=//p" "$DATA/etc/ports" 2>/dev/null)
    if [ -n "$port" ] && ! running "$3" "$4" && port_taken "$port"; then
        sed -i "/^$1=/d" "$DATA/etc/ports"
        port=""
    fi
    if [ -z "$port" ]; then
        port=$2
        while port_taken "$port" || grep -q "=$port\$" "$DATA/etc/ports" 2>/dev/null; do
            port=$((port + 1))
        done
        echo "$1=$port" >>"$DATA/etc/ports"
    fi
    echo "$port"
}

# Our own process is there and its port answers.
listening() { # PROCESS PROGRAM PORT
    running "$1" "$2" && port_taken "$3"
}

# Our own service is there and says that it can work.
ready() { # SERVICE PORT
    running "$1" "stentor-$1" && curl -fsS "http://127.0.0.1:$2/readyz"
}

wait_for() { # SECONDS WHAT COMMAND...
    local until=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $until ] || return 1
        sleep 0.2
    done
}

# ---- the S3 server of `up --s3`: Ceph's monitor, store and gateway as stentor-s3, objects in $DATA/s3 ----

s3_word() { sed -n "s/^$1=//p" "$DATA/etc/s3"; } # KEY_ID or SECRET

# Its key, its ports and its program, which stands where its user may read it. Sets storage_url.
prepare_s3() { # PROGRAM
    [ -s "$DATA/etc/s3" ] ||
        printf 'KEY_ID=AKIASTENTORLOCAL\nSECRET=%s\n' "$(head -c 24 /dev/urandom | base64 | tr '+/' '-_')" | put_private s3 "$(user_of s3)"
    install -m 755 "$1" "$DATA/bin/s3"
    s3_port=$(choose_port s3 9000 s3 "$DATA/bin/s3")
    s3_mon_port=$(choose_port s3-mon 9010 s3 "$DATA/bin/s3")
    storage_url="s3://stentor?endpoint=http://127.0.0.1:$s3_port"
}

start_s3() {
    running s3 "$DATA/bin/s3" || rm -f "$DATA/s3/ready"
    start s3 "$DATA/bin/s3" "$DATA/s3" --port "$s3_port" --mon-port "$s3_mon_port" --credentials "$DATA/etc/s3" --bucket stentor
    wait_for 90 s3 test -s "$DATA/s3/ready"
}

# ---- the mailbox: aiosmtpd with the handler of deploy/local/stentor_mailbox.py, mails in $DATA/mail ----

# The handler stands where its user may read it. Sets smtp_port.
prepare_mailbox() { # HANDLER
    cmp -s "$1" "$DATA/bin/stentor_mailbox.py" || { stop mailbox aiosmtpd; install -m 644 "$1" "$DATA/bin/stentor_mailbox.py"; }
    smtp_port=$(choose_port smtp 2525 mailbox aiosmtpd)
}

# aiosmtpd asks the DNS for this machine's name at each connection, and all mail waits for the answer: not for long.
start_mailbox() {
    PYTHONPATH=$DATA/bin RES_OPTIONS="timeout:1 attempts:1" start mailbox aiosmtpd -n -l "127.0.0.1:$smtp_port" \
        -c stentor_mailbox.DemoMailbox "$DATA/mail"
    wait_for 20 mailbox listening mailbox aiosmtpd "$smtp_port"
}

# ---- the vendor double: Postmark's API as stentor-vendor, what it took in $DATA/vendor/mails ----

# Its token, of which the dispatcher has a copy in the folder of its credentials, its port and its program. Sets vendor_port.
prepare_vendor() { # PROGRAM
    [ -s "$DATA/etc/vendor.token" ] || head -c 24 /dev/urandom | base64 | tr '+/' '-_' | put_private vendor.token "$(user_of vendor)"
    install -d -m 711 "$DATA/etc/credentials" # each file there is its reader's alone
    cmp -s "$DATA/etc/vendor.token" "$DATA/etc/credentials/postmark-demo" ||
        put_private credentials/postmark-demo "$(user_of dispatcher)" <"$DATA/etc/vendor.token"
    cmp -s "$1" "$DATA/bin/vendor-double" || { stop vendor vendor-double; install -m 755 "$1" "$DATA/bin/vendor-double"; }
    vendor_port=$(choose_port vendor 8095 vendor vendor-double)
}

start_vendor() {
    start vendor "$DATA/bin/vendor-double" "$DATA/vendor" --port "$vendor_port" --token "$DATA/etc/vendor.token"
    wait_for 20 vendor listening vendor vendor-double "$vendor_port"
}

# Mails to addresses at vendor.test go to it, and over SMTP while it fails. Once; what an operator changes or deletes there stays so, but for
# a port that is another one now, which $DATA/etc/demo-vendor has.
put_vendor() { # STENTOR...
    local known
    known=$(cat "$DATA/etc/demo-vendor" 2>/dev/null || true)
    [ "$known" != "$vendor_port" ] || return 0
    "$@" credential put postmark demo --reference "file:$DATA/etc/credentials/postmark-demo" --set "base_url=http://127.0.0.1:$vendor_port" >/dev/null ||
        return 1
    if [ -z "$known" ]; then
        "$@" credential promote postmark demo >/dev/null &&
            "$@" route put vendor-test --domain vendor.test --vendor postmark/demo --fallback smtp \
                --fallback-on unsent,config,elsewhere,open,retry >/dev/null || return 1
    fi
    echo "$vendor_port" >"$DATA/etc/demo-vendor"
}

# ---- the other channels' doubles (deploy/local/doubles): an SMS vendor, a push service, a webhook receiver, and a page ----

# Keys and certificates, made once; the dispatcher and the webhook-receiver have copies in the folder of their credentials. The dispatcher
# believes the push service's certificate beside the system's authorities. Sets doubles_port and doubles_tls_port.
prepare_doubles() { # PROGRAM
    local keys="$DATA/etc/doubles" credentials="$DATA/etc/credentials" file
    install -d -o "$(user_of doubles)" -g "$(user_of doubles)" -m 700 "$keys"
    install -d -m 711 "$credentials" # each file there is its reader's alone
    doubles_port=$(choose_port doubles 8096 doubles doubles)
    doubles_tls_port=$(choose_port doubles-tls 8097 doubles doubles)
    [ -s "$keys/twilio.token" ] || openssl rand -hex 16 | put_private doubles/twilio.token "$(user_of doubles)"
    [ -s "$keys/browser.json" ] || make_browser | put_private doubles/browser.json "$(user_of doubles)"
    [ -s "$keys/tls.pem" ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout - -out - 2>/dev/null | put_private doubles/tls.pem "$(user_of doubles)"
    [ -s "$credentials/webpush-demo" ] ||
        openssl ecparam -name prime256v1 -genkey -noout | put_private credentials/webpush-demo "$(user_of dispatcher)"
    for file in twilio-demo:dispatcher twilio-demo-callbacks:webhook-receiver; do
        cmp -s "$keys/twilio.token" "$credentials/${file%:*}" ||
            put_private "credentials/${file%:*}" "$(user_of "${file#*:}")" <"$keys/twilio.token"
    done
    { cat /etc/ssl/certs/ca-certificates.crt; openssl x509 -in "$keys/tls.pem"; } >"$DATA/etc/.vendor-authorities.pem"
    mv "$DATA/etc/.vendor-authorities.pem" "$DATA/etc/vendor-authorities.pem"
    chmod 644 "$DATA/etc/vendor-authorities.pem"
    python3 - "$keys/browser.json" "$doubles_tls_port" >"$DATA/etc/browser-subscription.json" <<'PYTHON'
import json, sys
keys = json.load(open(sys.argv[1]))
print(json.dumps({"endpoint": f"https://localhost:{sys.argv[2]}/push/demo", "keys": {"p256dh": keys["public"], "auth": keys["auth"]}}))
PYTHON
    chmod 644 "$DATA/etc/browser-subscription.json"
    cmp -s "$1" "$DATA/bin/doubles" || { stop doubles doubles; install -m 755 "$1" "$DATA/bin/doubles"; }
}

# The keys of a subscription, as a browser makes them.
make_browser() {
    python3 - <<'PYTHON'
import base64, json, os
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
text = lambda octets: base64.urlsafe_b64encode(octets).rstrip(b"=").decode()
key = ec.generate_private_key(ec.SECP256R1())
print(json.dumps({"private": text(key.private_numbers().private_value.to_bytes(32, "big")), "auth": text(os.urandom(16)),
                  "public": text(key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))}))
PYTHON
}

start_doubles() {
    start doubles "$DATA/bin/doubles" "$DATA/doubles" --port "$doubles_port" --tls-port "$doubles_tls_port" --keys "$DATA/etc/doubles"
    wait_for 20 doubles listening doubles doubles "$doubles_port"
}

# SMS and pushes of the demo's tenant go to them, and its webhook posts there. Once, as put_vendor.
put_doubles() { # STENTOR...
    local known port="$doubles_port" credentials="$DATA/etc/credentials"
    known=$(cat "$DATA/etc/demo-doubles" 2>/dev/null || true)
    [ "$known" != "$port" ] || return 0
    "$@" credential put twilio demo --reference "file:$credentials/twilio-demo" --key-id AC00000000000000000000000000demo01 --set from=+15005550006 \
        --set "base_url=http://127.0.0.1:$port" >/dev/null || return 1
    if [ -z "$known" ]; then
        "$@" credential promote twilio demo >/dev/null &&
            "$@" inbound put twilio --secret "demo=file:$credentials/twilio-demo-callbacks" >/dev/null &&
            "$@" credential put webpush demo --reference "file:$credentials/webpush-demo" --set subject=mailto:operator@stentor.test \
                --set hosts=localhost >/dev/null && "$@" credential promote webpush demo >/dev/null || return 1
    fi
    # The secret is shown once, so the receiver gets it here.
    if [ -z "$known" ]; then
        "$@" webhook create --name demo --url "http://127.0.0.1:$port/webhook" --json |
            sed -n 's/.*"secret": *"\([^"]*\)".*/\1/p' | put_private doubles/webhook.secrets "$(user_of doubles)" &&
            [ -s "$DATA/etc/doubles/webhook.secrets" ] || return 1
    fi
    echo "$port" >"$DATA/etc/demo-doubles"
}
