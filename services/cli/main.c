// SPDX-License-Identifier: Apache-2.0
// The `stentor` command: the table of commands, and which one is meant.
#include <stdlib.h>
#include <string.h>

#include "common/base/crash.h"
#include "common/base/log.h"
#include "common/service/options.h"
#include "services/cli/cli.h"
#include "services/cli/dlq_stages.h"
#include "services/cli/help.h"
#include "services/cli/run.h"
#include "services/cli/user_config.h"

// clang-format off
static const Option settings_table[] = {
    {"STENTOR_NATS_URL",      OPTION_TEXT, offsetof(Settings, session.nats_url),      "nats://127.0.0.1:4222", 0, 0, false, "NATS servers, separated by commas"},
    {"STENTOR_NATS_USER",     OPTION_TEXT, offsetof(Settings, session.user),     "", 0, 0, false, "NATS user"},
    {"STENTOR_NATS_PASSWORD", OPTION_TEXT, offsetof(Settings, session.password), "", 0, 0, true,  "its password"},
    {"STENTOR_DATABASE_URL",  OPTION_TEXT, offsetof(Settings, database_url),  "", 0, 0, true,  "Postgres connection string"},
    {"STENTOR_SUPERUSER_URL", OPTION_TEXT, offsetof(Settings, superuser_url), "", 0, 0, true,  "Postgres connection string of a superuser, for `init` only"},
    {"STENTOR_API_URL",       OPTION_TEXT, offsetof(Settings, api_url),       "http://127.0.0.1:8080", 0, 0, false, "where the API is"},
    {"STENTOR_API_KEY",       OPTION_TEXT, offsetof(Settings, api_key),       "", 0, 0, true,  "API key of the commands that ask the API"},
    {"STENTOR_API_CA_FILE",   OPTION_TEXT, offsetof(Settings, api_ca_file),   "", 0, 0, false, "certificates that an API over HTTPS may have, in PEM; not set: the system's authorities"},
    {"STENTOR_TENANT",        OPTION_TEXT, offsetof(Settings, tenant),        "", 0, 0, false, "tenant that the commands speak of"},
    {"STENTOR_HOME",          OPTION_TEXT, offsetof(Settings, home),          "", 0, 0, false, "folder with migrations/, and with deploy/ for `up` and `down`; not set: what was installed with this program, else the current folder"},
    {"STENTOR_MASTER_KEY_FILE", OPTION_TEXT, offsetof(Settings, master_key_file), "", 0, 0, false, "the services' master key file, for `migrate`, `doctor`, `keys`, `master-key` and `replay --shadow` only"},
    {"STENTOR_CORE_DUMPS",    OPTION_BOOL, offsetof(Settings, core_dumps), "false", 0, 0, false, "for developers: leave core dumps and let debuggers in"},
};

static const Command commands[] = {
    {"up", "", 0, 0, "json", "build and start everything on this machine (deploy/local/up)", cmd_up},
    {"down", "", 0, 0, "wipe json", "stop what `up` started\n  --wipe   forget its data too", cmd_down},
    {"init files", "", 0, 0, "folder= seen-as= database= nats= api-url= set= accounts= passwords= nats-listen= nats-store= group= service-groups renew json",
     "write the folder that an installation is made from: passwords, keys, settings, nats.conf; needs no server; what is there stays\n"
     "  --folder DIR                         where the files are (default /etc/stentor); --seen-as DIR: where the programs see it\n"
     "  --database CONNINFO --nats URL --api-url URL   where the servers are; CONNINFO without user and password\n"
     "  --set [NAME:]SETTING=VALUE           a line of every service's settings, or of one's; repeatable\n"
     "  --accounts FILE                      applications, relays and subscribers at NATS\n"
     "  --passwords FILE                     lines USER=PASSWORD of an installation that exists\n"
     "  --nats-listen ADDRESS:PORT --nats-store DIR    for nats.conf\n"
     "  --group GROUP | --service-groups     who may read the files beside their owner\n"
     "  --renew                              write settings anew from these options; passwords and keys stay", cmd_init_files},
    {"init servers", "", 0, 0, "folder= timeout= replicas= bytes-scale-percent= skip-roles reset-passwords json",
     "bring Postgres and NATS to what the folder says: database, roles, passwords, schemas, streams, the operator's key; safe to repeat\n"
     "  --folder DIR                         (default /etc/stentor)\n"
     "  --timeout S                          wait for the servers so long (default 60)\n"
     "  --replicas N --bytes-scale-percent N of the streams, as migrate\n"
     "  --skip-roles                         a database administrator has made database, roles and passwords\n"
     "  --reset-passwords                    give roles the folder's passwords although they have others", cmd_init_servers},
    {"init secrets", "", 0, 0, "folder= namespace=", "print the folder as Secrets of Kubernetes: ... | kubectl apply -f -\n"
     "  --folder DIR, --namespace NAME", cmd_init_secrets},
    {"init", "", 0, 0, "folder= seen-as= database= nats= api-url= set= accounts= passwords= nats-listen= nats-store= group= service-groups renew json timeout= replicas= bytes-scale-percent= skip-roles reset-passwords",
     "`init files`, then `init servers`, with the options of both; safe to repeat\n"
     "  --folder DIR                         where the files are (default /etc/stentor); --seen-as DIR: where the programs see it\n"
     "  --database CONNINFO --nats URL --api-url URL   where the servers are; CONNINFO without user and password\n"
     "  --set [NAME:]SETTING=VALUE           a line of every service's settings, or of one's; repeatable\n"
     "  --accounts FILE                      applications, relays and subscribers at NATS\n"
     "  --passwords FILE                     lines USER=PASSWORD of an installation that exists\n"
     "  --nats-listen ADDRESS:PORT --nats-store DIR    for nats.conf\n"
     "  --group GROUP | --service-groups     who may read the files beside their owner\n"
     "  --renew                              write settings anew from these options; passwords and keys stay\n"
     "  --timeout S                          wait for the servers so long (default 60)\n"
     "  --replicas N --bytes-scale-percent N of the streams, as migrate\n"
     "  --skip-roles                         a database administrator has made database, roles and passwords\n"
     "  --reset-passwords                    give roles the folder's passwords although they have others", cmd_init},
    {"ready", "URL...", 1, ARGS_MAX, "", "ask a service's admin port whether it can work (URL/readyz); exit status 1 when one cannot", cmd_ready},
    {"migrate", "", 0, 0, "bootstrap replicas= bytes-scale-percent= ack-wait-ms= passwords= skip-nats skip-database json",
     "bring Postgres (schemas) and NATS (streams, consumers) to this version; safe to repeat\n"
     "  --bootstrap              first, as a superuser: roles, rights and owner; the rest is done as stentor_owner\n"
     "  --replicas N             copies of each stream, 1 (a new installation's) or 3; not given: as many as it has\n"
     "  --bytes-scale-percent N  each stream's size limit in percent of the built-in one (a new installation: 100); not given: it stays\n"
     "  --ack-wait-ms N          redeliver what a worker did not settle after this long (default 30000)\n"
     "  --passwords FILE         nats-config's: the consumers of its subscribers are made too\n"
     "  --skip-nats, --skip-database\n"
     "  registers the keys of STENTOR_MASTER_KEY_FILE: programs that hold keys refuse every other file", cmd_migrate},
    {"send", "", 0, 0, "to= name= recipient= channel= template= template-version= locale= var= var-json= data= category= priority= correlation-id= at= expires= idempotency-key= json",
     "ask for a notification over the HTTP API; prints its id\n"
     "  --to ADDRESS --template KEY   who and which words (required)\n"
     "  --name TEXT                   display name\n"
     "  --recipient ID                the person; without --to the mail goes to the person's own address\n"
     "  --channel NAME[,NAME]         email (default), sms ...; a notification for each\n"
     "  --var NAME=TEXT               a variable, repeatable; --var-json NAME=JSON for other types; --data FILE for all\n"
     "  --at TIME, --expires TIME     RFC 3339: for later; never after\n"
     "  --idempotency-key TEXT        the same key and request within 24 h gives the same answer", cmd_send},
    {"batch create", "", 0, 0, "name= template= template-version= category= channel= locale= priority= rate= at= data= json",
     "make a draft of a campaign: one template to many; prints its id\n"
     "  --name TEXT --template KEY   required\n"
     "  --rate N                     so many a second at most (default: no limit)\n"
     "  --data FILE                  variables of all members, a JSON object\n"
     "  --priority NAME              default: low; --at TIME: when `batch schedule` starts it", cmd_batch_create},
    {"batch add", "ID FILE", 2, 2, "csv part= patience= json",
     "upload members from a .csv or NDJSON file ('-': standard input), in parts; may be repeated: what is there is known\n"
     "  --csv         it is CSV, whatever its name: columns to, name, recipient_id, locale; others are variables\n"
     "  --part N      number of the first part (default 1); a second file of a batch needs others than the first\n"
     "  --patience S  how long a part without an answer is sent again (default 60)", cmd_batch_add},
    {"batch schedule", "ID", 1, 1, "at= json", "start it at its time\n  --at TIME   RFC 3339 (default: the batch's own)", cmd_batch_schedule},
    {"batch start", "ID", 1, 1, "json", "start it now", cmd_batch_start},
    {"batch pause", "ID", 1, 1, "json", "stop where it stands", cmd_batch_pause},
    {"batch resume", "ID", 1, 1, "json", "go on exactly where it stopped", cmd_batch_resume},
    {"batch cancel", "ID", 1, 1, "json", "make no more; what was accepted goes on", cmd_batch_cancel},
    {"batch show", "ID", 1, 1, "watch json",
     "how far it is, and what became of its notifications\n  --watch   again and again until nothing is left to come", cmd_batch_show},
    {"batch list", "", 0, 0, "status= limit= json",
     "the youngest first\n  --status NAME   only those; --limit N at most so many (default 100, 0: all)", cmd_batch_list},
    {"login", "[URL]", 0, 1, "key-file= tenant= unchecked json",
     "write an API address and key into the file that `stentor` reads by itself, " USER_CONFIG "; readable by you alone\n"
     "  URL              default: STENTOR_API_URL; the key is asked for, or read from standard input\n"
     "  --key-file FILE  the key, instead of standard input\n"
     "  --tenant TENANT  for the commands that read NATS or Postgres; default: the key's own, when the API tells it\n"
     "  --unchecked      do not ask the API whether it takes the key", cmd_login},
    {"logout", "", 0, 0, "json", "take address, key and tenant out of that file again", cmd_logout},
    {"completion", "bash|zsh|fish", 1, 1, "",
     "print the completion of a shell: source <(stentor completion bash); stentor completion fish | source\n"
     "  zsh: stentor completion zsh >FOLDER/_stentor, where FOLDER is in its $fpath", cmd_completion},
    {"man", "", 0, 0, "", "print the manual page: stentor man | man -l -", cmd_man},
    {"version", "", 0, 0, "", "print the version; also stentor --version", cmd_version},
    {"status", "ID", 1, 1, "wait= timeout= json",
     "a notification with its timeline and attempts\n"
     "  --wait STATUS   until it has that status (or one that ends it); --timeout S gives up (default 30)", cmd_status},
    {"tail", "", 0, 0, "all count= every-tenant json",
     "status events as they happen\n  --all           from the beginning of the stream\n  --count N       stop after N\n"
     "  --every-tenant  not only the configured one", cmd_tail},
    {"template put", "KEY", 1, 1,
     "subject= html= text= title= version= channel= category= locale= preheader= require= partial= fallback= sample= from= draft source= "
     "provenance= approved-by= by= json",
     "publish a template version\n"
     "  --subject TEXT --html FILE --text FILE   the words (of e-mails: subject and one of both bodies are required)\n"
     "  --from FILE.json                         a whole document instead, with as many locales as it likes\n"
     "  --version X.Y.Z                          default: one patch above the highest\n"
     "  --draft                                  not usable yet; a draft may be put again\n"
     "  --require NAME[:TYPE]                    a variable that must be given, repeatable\n"
     "  --partial NAME=FILE --fallback LOCALE    repeatable\n"
     "  --sample FILE.json                       data for previews and test sends\n"
     "  --channel NAME --title TEXT --locale TAG --category NAME --preheader TEXT\n"
     "  --source NAME --approved-by NAME         platform, tenant or ai_drafted, which needs an approver to be active\n"
     "  --provenance TEXT --by NAME", cmd_template_put},
    {"template list", "", 0, 0, "platform json", "each template with its active version\n  --platform   those of every tenant", cmd_template_list},
    {"template show", "KEY", 1, 1, "version= platform json", "a version with its words (the active one)", cmd_template_show},
    {"template history", "KEY", 1, 1, "platform json", "all versions of a template: status, who, when", cmd_template_history},
    {"template activate", "KEY VERSION", 2, 2, "approved-by= platform json", "make a draft active\n  --approved-by NAME   of an ai_drafted one", cmd_template_activate},
    {"template archive", "KEY VERSION", 2, 2, "platform json", "take a version out of use; what was accepted with it is still sent", cmd_template_archive},
    {"template preview", "KEY", 1, 1, "version= locale= data= platform json",
     "what a version would say\n  --data FILE.json   instead of its sample\n  --locale TAG --version X.Y.Z", cmd_template_preview},
    {"template test-send", "KEY", 1, 1, "to= version= locale= data= platform json",
     "send it with its sample data, as an ordinary notification\n  --to ADDRESS       (required)\n  --data FILE.json --locale TAG --version X.Y.Z", cmd_template_test_send},
    {"template render", "", 0, 0, "file= data= partial= locale= zone= strict plain json",
     "render a template without a server\n  --file FILE --data FILE.json   template and variables\n"
     "  --partial NAME=FILE            repeatable; one that is not given is nothing\n"
     "  --locale TAG --zone NAME       of numbers, dates and plurals (default en-US, UTC)\n"
     "  --strict                       a variable that is missing is an error\n"
     "  --plain                        no HTML escaping", cmd_template_render},
    {"tenant put", "TENANT", 1, 1,
     "name= sender= sender-name= reply-to= locale= time-zone= quiet-hours= limit-minute= limit-day= recipient-limit-minute= "
     "recipient-limit-day= over-limit= guardian-routing= physical-address= theme= suspended no-suspended json",
     "create or change a tenant; what no option names stays as it is\n"
     "  --sender ADDRESS --sender-name TEXT     From of its e-mails; the address's domain counts as verified by it\n"
     "  --reply-to ADDRESS                      where replies to its e-mails go; '': to the sender\n"
     "  --locale TAG --time-zone ZONE           for recipients without their own\n"
     "  --quiet-hours 22:00-07:00|none          the same\n"
     "  --limit-minute N --limit-day N          of all that it sends; 0: none\n"
     "  --recipient-limit-minute N --recipient-limit-day N   of what one recipient gets\n"
     "  --over-limit defer|suppress             what happens beyond a limit\n"
     "  --guardian-routing none|copy|redirect   for minors without their own\n"
     "  --physical-address TEXT                 for the footer of e-mails\n"
     "  --theme NAME=VALUE                      {{theme.NAME}} in templates, repeatable; without a value: gone\n"
     "  --suspended, --no-suspended             it may not send; it may again", cmd_tenant_put},
    {"tenant show", "[TENANT]", 0, 1, "json", "the settings of a tenant (default: STENTOR_TENANT)", cmd_tenant_show},
    {"tenant sender-domain", "add|remove TENANT DOMAIN | list [TENANT]", 1, 3, "json",
     "the domains that a tenant's From may have: acme.test, or *.acme.test for all below it\n"
     "  a sender of a domain that is removed is taken out of the settings; mails with it that wait fail with sender_unverified", cmd_tenant_sender_domain},
    {"recipient put", "[ID]", 0, 1,
     "identity= name= email= sms= whatsapp= push= inapp= voice= webhook= locale= time-zone= quiet-hours= minor guardian= "
     "guardian-routing= file= json",
     "store a recipient whole; without an id a new one, or who has the identity\n"
     "  --identity TYPE:ID            guest, user, vendor or anonymous, and your own id of the person\n"
     "  --name TEXT --locale TAG --time-zone ZONE --quiet-hours 22:00-07:00\n"
     "  --email ADDRESS --sms NUMBER --whatsapp NUMBER --voice NUMBER --push TOKEN --inapp ID --webhook URL   repeatable\n"
     "  --minor --guardian ID --guardian-routing none|copy|redirect\n"
     "  --file FILE.json              the record as the API takes it, instead of the above", cmd_recipient_put},
    {"recipient get", "[ID]", 0, 1, "address= identity= reveal json",
     "a recipient, or those with an address or an identity\n"
     "  --address ADDRESS | --identity TYPE:ID   instead of an id\n"
     "  --reveal                                 names and addresses whole, not masked", cmd_recipient_get},
    {"recipient delete", "ID", 1, 1, "json", "remove a recipient and all that belongs to it", cmd_recipient_delete},
    {"recipient prefs", "ID", 1, 1, "set= file= unsubscribe resubscribe json",
     "show or change what a recipient wants to get\n"
     "  --set CATEGORY[/CHANNEL]=CHOICE   off, immediate, hourly, daily@08:30, weekly@08:30/5 (5: Friday) or clear; repeatable;\n"
     "                                  'any' for every category or channel\n"
     "  --file FILE.json                the whole set anew\n"
     "  --unsubscribe, --resubscribe    from everything but critical and security", cmd_recipient_prefs},
    {"recipient consent", "ID", 1, 1, "grant= withdraw= source= json",
     "show or change consents\n"
     "  --grant CATEGORY[/CHANNEL], --withdraw CATEGORY[/CHANNEL]   repeatable\n"
     "  --source TEXT                                               where it was given (default: cli)", cmd_recipient_consent},
    {"recipient import", "FILE", 1, 1, "format= errors= patience= json",
     "store the people of a CSV or NDJSON file; a wrong line is told, the rest goes on; exit status 1 when there was one\n"
     "  --format csv|ndjson   default: by the file's name; - is standard input\n"
     "  --errors N            wrong lines that are listed (default 20)\n"
     "  --patience SECONDS    how long to try again while the API is away (default 60)", cmd_recipient_import},
    {"apikey bootstrap", "", 0, 0, "name= expires= json",
     "an operator's key, made without the API: the first one, or one when all are lost; shown once, stored hashed\n"
     "  NATS user: stentor-admin. It speaks for every tenant (STENTOR_TENANT) and sets what only the operator sets\n"
     "  --expires TIME   RFC 3339, or how long from now: 12h, 90d (default: never)\n"
     "  --name TEXT", cmd_apikey_bootstrap},
    {"apikey create", "", 0, 0, "name= scopes= expires= tenant= json",
     "a new API key for the tenant; shown once, stored hashed\n"
     "  --scopes LIST    what it may, with commas: send, read, manage, admin (default), or single ones such as recipients:reveal;\n"
     "                   keys:manage and, of tenant platform, operator only by their names\n"
     "  --expires TIME   RFC 3339, or how long from now: 12h, 90d (default: never)\n"
     "  --name TEXT, --tenant TENANT", cmd_apikey_create},
    {"apikey list", "", 0, 0, "all tenant= json",
     "the tenant's API keys, without their secrets\n"
     "  --all   revoked and expired ones too; --tenant TENANT", cmd_apikey_list},
    {"apikey rotate", "ID", 1, 1, "grace= name= scopes= expires= tenant= json",
     "a new key in the place of one; the old one goes on for a while\n"
     "  --grace SPAN     for how long: 0s, 30m, 24h (default), 7d\n"
     "  --scopes LIST, --name TEXT   default: the old one's; --expires TIME: default as long again\n"
     "  --tenant TENANT", cmd_apikey_rotate},
    {"apikey revoke", "ID", 1, 1, "tenant= json", "end a key now: every replica refuses it within a second\n  --tenant TENANT", cmd_apikey_revoke},
    {"inbound put", "VENDOR", 1, 1, "public-key= revoke json",
     "the key that a vendor signs its callbacks with (vendor: sendgrid)\n  --public-key BASE64   as the vendor's console shows it", cmd_inbound_put},
    {"trigger put", "KEY", 1, 1,
     "file= event= template= resolver= channel= category= priority= name-path= locale-path= offset= anchor= subject-path= "
     "obsoleted-by= disabled json",
     "which domain event becomes which notification; STENTOR_TENANT=platform: for every tenant\n"
     "  --file FILE                 the trigger as JSON (services/ingest/README.md); the flags go over it\n"
     "  --event TYPE --template KEY --resolver address:PATH|recipient:PATH|identity:TYPE:PATH|recipients:PATH   (required)\n"
     "  --anchor PATH --offset S    when: so many seconds from that date of the event (default: from the event itself)\n"
     "  --subject-path PATH --obsoleted-by TYPE   what cancels it while it waits; --obsoleted-by is repeatable\n"
     "  --name-path PATH --locale-path PATH --channel NAME --category NAME --priority NAME\n"
     "  --disabled                  it does nothing; a tenant's own also takes the platform's away", cmd_trigger_put},
    {"trigger list", "", 0, 0, "json", "the tenant's own triggers and the platform's, and which of a key is in force", cmd_trigger_list},
    {"trigger show", "KEY", 1, 1, "json", "the trigger that is in force", cmd_trigger_show},
    {"trigger delete", "KEY", 1, 1, "json", "take the tenant's own trigger away; the platform's of the same key is then in force", cmd_trigger_delete},
    {"trigger try", "KEY", 1, 1, "event-file= message= json",
     "what it would make of a sample event; nothing is sent\n"
     "  --event-file FILE   the event as it would be published\n"
     "  --message NAME      it is protobuf: stentor.v1.PlaceOrder", cmd_trigger_try},
    {"dlq list", "", 0, 0, "stage= since= limit= all-tenants json",
     "dead letters: what a stage gave up, and why\n"
     "  --stage NAME    of one stage: " DLQ_STAGES "\n"
     "  --since WHEN    30m, 2h, 7d, or a time in RFC 3339\n"
     "  --limit N       the newest N only\n"
     "  --all-tenants   not only the configured one", cmd_dlq_list},
    {"dlq show", "SEQUENCE|EVENT-ID|NOTIFICATION-ID", 1, 1, "all-tenants json",
     "a dead letter with its reason, attempts and event; sealed fields stay sealed\n"
     "  --all-tenants   not only the configured one", cmd_dlq_show},
    {"dlq resend", "SEQUENCE... | --all", 0, ARGS_MAX, "all stage= since= all-tenants dry-run ignore-expiry may-double json",
     "have dead letters handled again, past the retry limits, and delete them\n"
     "  --all                  every letter; --stage NAME, --since WHEN narrow it\n"
     "  --dry-run              only say what would be done\n"
     "  --ignore-expiry        also mails that have expired\n"
     "  --may-double           also mails that may have been sent already\n"
     "  --all-tenants          not only the configured one", cmd_dlq_resend},
    {"dlq drop", "SEQUENCE... | --all", 0, ARGS_MAX, "all stage= since= all-tenants dry-run yes json",
     "delete dead letters for good\n"
     "  --all           every letter (needs --yes); --stage NAME, --since WHEN narrow it\n"
     "  --dry-run       only say what would be done\n"
     "  --all-tenants   not only the configured one", cmd_dlq_drop},
    {"rebuild", "PROJECTION", 1, 1, "dry-run carry-older keep-old json",
     "make a projection (history) anew from the log and swap it in; the services go on\n"
     "  --dry-run       compare with the live tables row by row instead; exit status 1 when they differ\n"
     "  --carry-older   copy rows that may be older than the log from the live tables first\n"
     "  --keep-old      keep the former tables as schema archiver_old until the next rebuild", cmd_rebuild},
    {"replay", "", 0, 0,
     "stream= from-seq= from-time= last-per-subject to-seq= to-time= subject= to-service= to-subject= dry-run rate= tenant= all-tenants "
     "run= accept-again shadow template= subject-template= text= key= locale= limit= diffs= json",
     "read a stream's past again, through a service (nothing is sent twice) or to a subject\n"
     "  --stream S                    REQUEST_NORMAL, RENDERED_LOW, STATUS ... (required)\n"
     "  --from-seq N | --from-time T | --last-per-subject   where it begins; T is RFC 3339 or how long ago: 90s, 15m, 2h, 7d\n"
     "  --to-seq N, --to-time T       where it ends; default: where the stream ends now\n"
     "  --subject FILTER              only these subjects of it\n"
     "  --tenant T | --all-tenants    whose messages; default: STENTOR_TENANT\n"
     "  --to-service NAME             the service that works on the stream does it again\n"
     "  --to-subject replay.ANYTHING  plain messages for a subscriber of your own; nothing is kept\n"
     "  --dry-run                     only count\n"
     "  --rate N/s                    at most so many a second\n"
     "  --run ID                      go on with an interrupted replay: the same copies have the same ids\n"
     "  --accept-again                EVENTS: also commands of more than 23 h ago, which become new notifications\n"
     "replay --shadow: past requests with other words; prints what would have been different, sends nothing\n"
     "  --from-time T --template FILE.hbs   the new html (required); --subject-template FILE, --text FILE beside or instead\n"
     "  --key KEY                     of the template; default: the file's name before the first dot\n"
     "  --locale TAG                  the variant that is replaced; default: each version's first\n"
     "  --limit N                     requests of the template that are read at most\n"
     "  --diffs N                     differences that are printed (default 3)", cmd_replay},
    {"doctor", "", 0, 0, "outbox-database= json",
     "check NATS and who works on each stream, Postgres, each projection, the API, and how durable this installation is\n"
     "  --outbox-database URL  also the relays of the outboxes in this database (a Postgres URL); may be repeated", cmd_doctor},
    {"audit", "", 0, 0, "since= until= grace= tenant= limit= repair wait= json",
     "reconcile every record of every notification; names what is lost, doubled or unknown\n"
     "  --since TIME, --until TIME   accepted between (RFC 3339, or 90s, 30m, 2h, 7d ago; default 24h ago to now)\n"
     "  --grace SECONDS              what moved later than that is in flight, not lost (default 30)\n"
     "  --tenant TENANT              only this one's; --limit N findings are listed (default 20, 0: all)\n"
     "  --repair                     publish what is lost again from the accept log; the ledger refuses what was sent\n"
     "  --wait SECONDS               for what was published again, before the second audit (default 30)", cmd_audit},
    {"outbox install", "", 0, 0, "mapping= role= wake as-superuser json",
     "make Stentor's tables beside an application's outbox table (STENTOR_DATABASE_URL: the application's); safe to repeat\n"
     "  --mapping FILE   which table and how it is read (required)\n"
     "  --role ROLE      grant the relay's role what it needs\n"
     "  --wake           a trigger on the table: one NOTIFY per INSERT statement\n"
     "  --as-superuser   although it connects as one: triggers of the application's run with its rights (all outbox commands)", cmd_outbox_install},
    {"outbox check", "", 0, 0, "mapping= role= as-superuser json",
     "whether a mapping fits the tables: columns, types, rights, an index; exit status 1 when not\n"
     "  --mapping FILE   required\n"
     "  --role ROLE      as this role", cmd_outbox_check},
    {"outbox show", "", 0, 0, "mapping= role= limit= as-superuser json",
     "what waits, is claimed, was sent, failed or does not fit\n"
     "  --mapping FILE   required\n"
     "  --limit N        failed and refused rows to list (default 20)", cmd_outbox_show},
    {"outbox retry", "[KEY ...]", 0, 60, "mapping= role= all-refused failed force as-superuser json",
     "take rows once more that were refused or have failed; exit status 3 when no KEY is one\n"
     "  --mapping FILE   required\n"
     "  --all-refused, --failed   all of them\n"
     "  --force          also what is under way or sent: it may be sent twice", cmd_outbox_retry},
    {"suppress list", "", 0, 0, "channel= reason= address= all limit= tenant= json",
     "the addresses that are not written to\n"
     "  --address ADDRESS   only this one; --channel NAME, --reason NAME narrow it\n"
     "  --all               released and expired ones too\n"
     "  --limit N           at most so many (default 100, 0: all)\n"
     "  --tenant TENANT     whose list; 'platform' holds for every tenant", cmd_suppress_list},
    {"suppress add", "ADDRESS", 1, 1, "channel= category= reason= note= expires= tenant= json",
     "write to an address no more\n"
     "  --category NAME   only mails of this one (default: any); --channel NAME (default email)\n"
     "  --reason NAME     hard_bounce, complaint, invalid_address, opt_out, manual (default), compliance, rate_limit\n"
     "  --expires TIME    until then, RFC 3339; --note TEXT; --tenant TENANT", cmd_suppress_add},
    {"suppress release", "[ID]", 0, 1, "address= channel= tenant= json",
     "write to an address again; the entry stays, with who and when\n"
     "  --address ADDRESS   all its entries on the channel, instead of one by its id\n"
     "  --channel NAME (default email), --tenant TENANT", cmd_suppress_release},
    {"suppress import", "FILE", 1, 1, "format= channel= category= reason= note= expires= dry-run tenant= json",
     "add the addresses of a file (CSV with a header line, or NDJSON; '-': standard input)\n"
     "  columns: address or address_hash, channel, category, reason, note, expires_at; the flags say what a line leaves out\n"
     "  --format csv|ndjson   default: by the file's name\n"
     "  --dry-run             only check the lines\n"
     "  a broken line is named and passed over; exit status 1 when there was one", cmd_suppress_import},
    {"suppress export", "", 0, 0, "format= channel= reason= address= all tenant=",
     "the list as CSV or NDJSON, fit for import: addresses are masked, their hashes are whole\n"
     "  --format csv|ndjson   default csv\n"
     "  --all                 released and expired ones too; --channel NAME, --reason NAME, --address ADDRESS, --tenant TENANT", cmd_suppress_export},
    {"config export", "", 0, 0, "",
     "print CONFIG (tenants, API keys, templates, triggers, suppressions) as NDJSON with checksums, for a backup\n"
     "  the file holds hashes of API keys and addresses: keep it as a secret", cmd_config_export},
    {"config import", "FILE", 1, 1, "dry-run force json",
     "publish what an export has and CONFIG lacks or has otherwise; a second time nothing is left to do ('-': standard input)\n"
     "  --dry-run   only say what would be done\n"
     "  --force     also where the entry was changed after the export; without it nothing is imported then", cmd_config_import},
    {"config mend", "SUBJECT", 1, 1, "drop json",
     "put the newest readable entry again where the last one cannot be read (stentor doctor names such)\n"
     "  --drop   when there is none: delete what cannot be read", cmd_config_mend},
    {"nats-config", "", 0, 0, "passwords=", "print the accounts of nats-server: ours, and one of each application, relay and subscriber\n"
     "  --passwords FILE   lines of user=password, 'application NAME tenants=TENANT,...|*', the same with 'relay', 'subscriber NAME tenant=TENANT'", cmd_nats_config},
    {"keys status", "", 0, 0, "json", "the registered master and hash keys, and what still hangs on each", cmd_keys_status},
    {"keys retire", "ID", 1, 1, "now", "say that nothing hangs on a key any more, so that the file need not hold it; the role that owns the schemas\n"
     "  --now   a master key before its opt-out links have ended, or a hash key: what only it finds is not found any more", cmd_keys_retire},
    {"master-key add", "", 0, 0, "kind=",
     "print the master key file with a new key behind the others: it opens and finds, and is not used yet\n"
     "  --kind master|hash   default master", cmd_master_key_add},
    {"master-key use", "ID", 1, 1, "", "print the master key file with that key first of its kind: the current one", cmd_master_key_use},
    {"master-key remove", "ID", 1, 1, "", "print the master key file without that key, which must not be the current one", cmd_master_key_remove},
    {"master-key", "", 0, 0, "", "print a new master key file: one master key, one hash key", cmd_master_key},
};
// clang-format on
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

// The longest command name that the words begin with; *ret_used is how many words it took.
static const Command *find_command(int argc, char **argv, int *ret_used)
{
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const char *space = strchr(commands[i].name, ' ');
        if (space == NULL && strcmp(argv[0], commands[i].name) == 0) {
            *ret_used = 1;
            return &commands[i];
        }
        if (space != NULL && argc > 1 &&
            str_eq(
                str_from(argv[0]), str_of(commands[i].name, (size_t)(space - commands[i].name))) &&
            strcmp(argv[1], space + 1) == 0) {
            *ret_used = 2;
            return &commands[i];
        }
    }
    return NULL;
}

static const CommandTable table = {
    commands, COMMAND_COUNT, settings_table, sizeof settings_table / sizeof *settings_table};

#ifdef STENTOR_CRASH_POINTS
static int print_crash_points(void)
{
    Buf out;
    buf_init(&out, 64 * 1024);
    (void)crash_points_print("cli", &out);
    fputs(buf_c(&out), stdout);
    buf_done(&out);
    return EXIT_DONE;
}
#endif

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

int main(int argc, char **argv)
{
    log_setup("stentor", LOG_WARN, false);
    int at = options_rest(table.settings, table.setting_count, argc, argv);
    const char *word = at < argc ? argv[at] : "help";
    if (strcmp(word, "help") == 0 || is_help(word)) {
        char topic[64] = "";
        for (int i = at + 1; i < argc; i++) {
            snprintf(
                topic + strlen(topic), sizeof topic - strlen(topic), "%s%s", i > at + 1 ? " " : "",
                argv[i]);
        }
        return help_print(&table, topic[0] != '\0' ? topic : NULL);
    }
    if (strcmp(word, "--version") == 0) {
        return cmd_version(NULL);
    }
#ifdef STENTOR_CRASH_POINTS
    if (strcmp(word, "--crash-points") == 0) {
        return print_crash_points();
    }
#endif
    int used = 0;
    const Command *command = find_command(argc - at, argv + at, &used);
    if (command == NULL) {
        const char *second = argc > at + 1 ? argv[at + 1] : NULL;
        if (second != NULL && is_help(second)) {
            return help_print(&table, word);
        }
        return help_unknown(&table, word, second);
    }
    return command_run(&table, command, at, at + used, argc, argv);
}
