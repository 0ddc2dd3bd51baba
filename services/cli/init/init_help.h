// SPDX-License-Identifier: Apache-2.0
// The options of `init`, `init files` and `init servers`, which share them, for the command table.
#pragma once

// What `init files` takes.
#define INIT_FILES_FLAGS                                                                           \
    "folder= seen-as= database= nats= api-url= set= accounts= passwords= nats-listen= "            \
    "nats-store= group= service-groups epoch-keys= renew json"

// clang-format off
#define INIT_FOLDER_HELP "\n  --folder DIR                  where the files are (default /etc/stentor)"
#define INIT_FILES_HELP \
    "\n  --seen-as DIR                 where the programs see the folder, when it is mounted elsewhere" \
    "\n  --database CONNINFO           host, port, database and TLS of Postgres, without user and password" \
    "\n  --nats URL, --api-url URL     where the programs reach NATS; where the command line reaches the API" \
    "\n  --set [NAME:]SETTING=VALUE    a line in the settings of every service, or of service NAME; repeatable" \
    "\n  --accounts FILE               applications, relays and subscribers at NATS" \
    "\n  --passwords FILE              lines USER=PASSWORD of an installation that exists already" \
    "\n  --nats-listen ADDRESS:PORT, --nats-store DIR   for nats.conf" \
    "\n  --group GROUP, --service-groups   who may read the files besides their owner" \
    "\n  --epoch-keys DIR|none         the folder of epoch keys (default of a new installation: /var/lib/stentor-epochs,\n" \
    "                                for another folder than /etc/stentor: DIR-epochs beside it)" \
    "\n  --renew                       write the settings again from these options; what you changed in them, passwords and keys stay"
#define INIT_SERVERS_HELP \
    "\n  --timeout S                   how long to wait for the servers (default 60)" \
    "\n  --replicas N, --bytes-scale-percent N   of the streams, as for migrate" \
    "\n  --skip-roles                  a database administrator has made the database, roles and passwords" \
    "\n  --reset-passwords             give the roles the passwords of the folder even when they have others"
// clang-format on
