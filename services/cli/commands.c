// SPDX-License-Identifier: Apache-2.0
// One row for each command. The help's first line stands in every list; each line behind it is an
// option ("--name VALUE", two blanks, what it does) or a sentence. A flag that must be given is
// marked with '!'.
#include "services/cli/commands.h"
#include "services/cli/dlq_stages.h"
#include "services/cli/init/init_help.h"
#include "services/cli/user_config.h"

// clang-format off
const Command commands[] = {
    {"up", "", 0, 0, "json", "build and start everything on this machine (deploy/local/up)", cmd_up, "Install and run"},
    {"down", "", 0, 0, "wipe json", "stop everything that `up` started\n  --wipe   delete its data too", cmd_down, NULL},
    {"init", "", 0, 0, INIT_FILES_FLAGS " timeout= replicas= bytes-scale-percent= skip-roles reset-passwords",
     "run `init files`, then `init servers`, with the options of both; safe to repeat"
     INIT_FOLDER_HELP INIT_FILES_HELP INIT_SERVERS_HELP, cmd_init, NULL},
    {"init files", "", 0, 0, INIT_FILES_FLAGS,
     "write the folder that an installation is made from: passwords, keys, settings, nats.conf; needs no server\n"
     "  Files that exist are kept." INIT_FOLDER_HELP INIT_FILES_HELP, cmd_init_files, NULL},
    {"init servers", "", 0, 0, "folder= timeout= replicas= bytes-scale-percent= skip-roles reset-passwords json",
     "set up Postgres and NATS as the folder describes: database, roles, passwords, schemas, streams, operator key\n"
     "  Safe to repeat." INIT_FOLDER_HELP INIT_SERVERS_HELP, cmd_init_servers, NULL},
    {"init secrets", "", 0, 0, "folder= namespace=", "print the folder as Secrets of Kubernetes: ... | kubectl apply --server-side -f -"
     INIT_FOLDER_HELP "\n  --namespace NAME              of the Secrets", cmd_init_secrets, NULL},
    {"subscriber create", "NAME", 1, 1, "tenant= folder= json",
     "give a program that reads a tenant's statuses a NATS user of its own, in the folder of init; prints its password\n"
     "  It may make the consumers NAME and NAME-0 to NAME-7 on the stream STATUS, and sees nothing but the tenant's statuses.\n"
     "  --tenant TENANT               default: STENTOR_TENANT" INIT_FOLDER_HELP, cmd_subscriber_create, NULL},
    {"migrate", "", 0, 0, "bootstrap check replicas= bytes-scale-percent= ack-wait-ms= passwords= skip-nats skip-database json",
     "bring the schemas of Postgres and the streams and consumers of NATS to this version; safe to repeat\n"
     "  --bootstrap              as a superuser, first create roles, rights and owner; the rest runs as stentor_owner\n"
     "  --check                  change nothing: name each object of Postgres that is not as the migrations make it; exit status 1 when\n"
     "                           there is one. They run in a database of their own, for which STENTOR_SUPERUSER_URL is needed\n"
     "  --replicas N             copies of each stream: 1 (default of a new installation) or 3; not given: as it is\n"
     "  --bytes-scale-percent N  size limit of each stream in percent of the built-in one; not given: as it is\n"
     "  --ack-wait-ms N          redeliver a message that a worker has not settled after this time (default 30000)\n"
     "  --passwords FILE         the file of nats-config: creates the consumers of its subscribers too\n"
     "  --skip-nats, --skip-database   leave out one half\n"
     "  Registers the keys of STENTOR_MASTER_KEY_FILE; the services refuse every other key file.", cmd_migrate, NULL},
    {"nats-config", "", 0, 0, "passwords=!", "print the accounts for nats-server: one for the services, one for each application, relay, subscriber\n"
     "  --passwords FILE   lines USER=PASSWORD, 'application NAME tenants=TENANT,...|*', the same with 'relay',\n"
     "                     'subscriber NAME tenant=TENANT'", cmd_nats_config, NULL},
    {"ready", "URL...", 1, ARGS_MAX, "", "ask the admin port of a service whether it can work (URL/readyz); exit status 1 when one cannot", cmd_ready, NULL},

    {"login", "[URL]", 0, 1, "key-file= tenant= unchecked json",
     "store the address and key of an API in your own settings file, " USER_CONFIG "\n"
     "  URL              default: STENTOR_API_URL. The key is asked for, or read from standard input\n"
     "  --key-file FILE  read the key from FILE\n"
     "  --tenant TENANT  for the commands that read NATS or Postgres; default: the tenant of the key\n"
     "  --unchecked      do not ask the API whether it accepts the key", cmd_login, "Settings and help"},
    {"logout", "", 0, 0, "json", "remove address, key and tenant from your own settings file", cmd_logout, NULL},
    {"completion", "bash|zsh|fish", 1, 1, "",
     "print the completion of a shell: source <(stentor completion bash); stentor completion fish | source\n"
     "  For zsh: stentor completion zsh >FOLDER/_stentor, where FOLDER is in its $fpath.", cmd_completion, NULL},
    {"man", "", 0, 0, "markdown", "print the manual page: stentor man | man -l -\n  --markdown   as Markdown: services/cli/COMMANDS.md", cmd_man, NULL},
    {"version", "", 0, 0, "", "print the version; also stentor --version", cmd_version, NULL},

    {"send", "", 0, 0, "template=! to= name= recipient= cc= bcc= reply-to= list-id= attach= channel= template-version= locale= var= var-json= data= category= priority= correlation-id= at= expires= consent-source= consent-at= idempotency-key= json",
     "request a notification over the API; prints its id\n"
     "  --template KEY                its content\n"
     "  --to ADDRESS                  who gets it; or --recipient\n"
     "  --recipient ID                a stored recipient; without --to at the address of its record\n"
     "  --name TEXT                   display name of --to\n"
     "  --cc ADDRESS, --bcc ADDRESS   of an e-mail: who gets the same mail; repeatable\n"
     "  --reply-to ADDRESS, --list-id ID   of an e-mail: where answers go; its List-Id\n"
     "  --attach FILE                 of an e-mail: a file, which is uploaded; or the id of one (att_...); repeatable\n"
     "  --channel NAME[,NAME]         email (default), sms ...; a notification for each\n"
     "  --template-version X.Y.Z      default: the active version\n"
     "  --locale TAG                  default: that of the recipient or the tenant\n"
     "  --var NAME=TEXT               a variable; repeatable\n"
     "  --var-json NAME=JSON          a variable of another type than text; repeatable\n"
     "  --data FILE                   variables from a JSON object\n"
     "  --category NAME, --priority NAME   transactional (default), marketing ...; low, normal (default), high, critical\n"
     "  --correlation-id TEXT         your own reference, shown with its status\n"
     "  --at TIME                     send it then: RFC 3339, or a span from now such as 2h\n"
     "  --expires TIME                do not send it after this time; written as --at\n"
     "  --consent-source TEXT, --consent-at TIME   marketing to an address that no recipient has: where and when its owner\n"
     "                                consented; RFC 3339\n"
     "  --idempotency-key TEXT        repeated within 24 h with the same request, it gets the same answer", cmd_send, "Send"},
    {"status", "ID", 1, 1, "wait= timeout= json",
     "show a notification with its timeline and attempts\n"
     "  --wait STATUS   wait until it has this status, or one that ends it\n"
     "  --timeout S     give up waiting (default 30)", cmd_status, NULL},
    {"why", "ID", 1, 1, "json",
     "say why a notification did or did not arrive, and what can be done: what the gate asked, what it waits for, what\n"
     "the vendor said, and the number of its dead letter", cmd_why, NULL},
    {"scheduled list", "", 0, 0, "reason= recipient= trigger= subject= before= limit= json",
     "list what waits for a time, the first due first: schedules, quiet hours, limits, digests, retries\n"
     "  --reason NAME                  schedule, quiet, limit, digest or retry\n"
     "  --recipient ID                 of this recipient\n"
     "  --trigger KEY --subject TEXT   what the trigger scheduled for the subject\n"
     "  --before TIME                  due before it: RFC 3339\n"
     "  --limit N                      at most N (default 100, 0: all)", cmd_scheduled_list, NULL},
    {"cancel", "ID", 1, 1, "json", "end a notification that waits for its time; one that is due, or was attempted, is not cancelled", cmd_cancel, NULL},
    {"find", "", 0, 0, "correlation= order= source-event= digest= copy-of= recipient= vendor-message-id= vendor= since= limit= json",
     "list the notifications that belong to an order, an event, a digest or a vendor's message, the youngest first\n"
     "  --correlation TEXT         of this correlation id\n"
     "  --order UUID               the mails of an order, by its order id or its correlation id\n"
     "  --source-event ID          that this event made\n"
     "  --digest ID                what the digest window took up, and the digest itself\n"
     "  --copy-of ID               a guardian's copies of the notification\n"
     "  --recipient ID             to this recipient; with --since, because it reads all from then on\n"
     "  --vendor-message-id TEXT [--vendor NAME]   the message with this id of a vendor; of SMTP the Message-ID\n"
     "  --since TIME               accepted since then: RFC 3339, or a span before now\n"
     "  --limit N                  at most N (default 100)\n"
     "  One of the first seven. Exit status 3: there is none. What is archived is not looked through.", cmd_find, NULL},
    {"order show", "ID", 1, 1, "json",
     "show an order of the order saga with its transitions and conflicts, by its order id or its correlation id", cmd_order_show, NULL},
    {"order list", "", 0, 0, "state= limit= json",
     "list the orders that are not archived yet, the youngest first\n"
     "  --state NAME   Placed, Completed, Cancelled or Failed (no status arrived: they need to be looked at)\n"
     "  --limit N      at most N (default 100)", cmd_order_list, NULL},
    {"tail", "", 0, 0, "all count= every-tenant json",
     "print status events as they happen; with --json one object a line\n  --all           from the beginning of the stream\n"
     "  --count N       stop after N events\n  --every-tenant  not only those of STENTOR_TENANT", cmd_tail, NULL},
    {"batch create", "", 0, 0, "name=! template=! template-version= category= channel= locale= priority= rate= at= data= consent-source= consent-at= "
     "label= recipient-locale= identity-type= consented query= dry-run json",
     "create the draft of a campaign, one template to many recipients; prints its id\n"
     "  --name TEXT, --template KEY\n"
     "  --rate N                     at most N notifications a second (default: no limit)\n"
     "  --data FILE                  variables of all members, a JSON object\n"
     "  --priority NAME              default low\n"
     "  --at TIME                    when `batch schedule` starts it: RFC 3339, or a span from now such as 2h\n"
     "  --consent-source TEXT, --consent-at TIME   of marketing: where and when the members without one of their own consented\n"
     "  --template-version X.Y.Z, --category NAME, --channel NAME, --locale TAG\n"
     "Members chosen among the tenant's recipients when the batch starts, in the place of `batch add`; all that is said must hold:\n"
     "  --label LABEL                repeatable: all of them\n"
     "  --recipient-locale TAG       repeatable: one of them; 'de' is also 'de-AT'\n"
     "  --identity-type TYPE         repeatable: one of guest, user, vendor, anonymous\n"
     "  --consented                  has consented to the batch's category on its channel\n"
     "  --query FILE.json            the recipient_query as the API takes it ({}: every recipient), instead of these options\n"
     "  --dry-run                    only count them", cmd_batch_create, NULL},
    {"batch add", "ID FILE", 2, 2, "csv part= patience= json",
     "upload members from a CSV or NDJSON file ('-': standard input); safe to repeat\n"
     "  --csv         FILE is CSV, whatever its name: columns to, name, recipient_id, locale, consent_source,\n"
     "                consent_at; others are variables\n"
     "  --part N      number of the first part (default 1); a second file of a batch needs other numbers\n"
     "  --patience S  how long to repeat a part that gets no answer (default 60)", cmd_batch_add, NULL},
    {"batch schedule", "ID", 1, 1, "at= json", "start a batch at its time\n  --at TIME   RFC 3339, or a span from now such as 2h (default: the time of `batch create`)", cmd_batch_schedule, NULL},
    {"batch start", "ID", 1, 1, "json", "start a batch now", cmd_batch_start, NULL},
    {"batch pause", "ID", 1, 1, "json", "stop a batch for a while", cmd_batch_pause, NULL},
    {"batch resume", "ID", 1, 1, "json", "continue a paused batch exactly where it stopped", cmd_batch_resume, NULL},
    {"batch cancel", "ID", 1, 1, "json", "end a batch; notifications that were accepted are still sent", cmd_batch_cancel, NULL},
    {"batch show", "ID", 1, 1, "watch json",
     "show the progress of a batch, and its notifications by status\n  --watch   repeat until nothing is left to come", cmd_batch_show, NULL},
    {"batch list", "", 0, 0, "status= limit= json",
     "list the batches, the youngest first\n  --status NAME   only those with this status\n  --limit N       at most N (default 100, 0: all)", cmd_batch_list, NULL},

    {"template put", "KEY", 1, 1,
     "subject= html= text= title= version= channel= category= locale= preheader= require= partial= fallback= sample= from= draft source= "
     "provenance= approved-by= by= priority= supersedes= allow-category-change json",
     "publish a template version\n"
     "  --subject TEXT           of an e-mail: required\n"
     "  --html FILE, --text FILE   the body; of an e-mail one of both is required\n"
     "  --from FILE.json         a whole document instead, with any number of locales\n"
     "  --version X.Y.Z          default: one patch above the highest\n"
     "  --draft                  not usable yet; a draft may be put again\n"
     "  --require NAME[:TYPE]    a variable that each notification must have; repeatable\n"
     "  --partial NAME=FILE, --fallback LOCALE   repeatable\n"
     "  --sample FILE.json       data for previews and test sends\n"
     "  --channel NAME, --title TEXT, --locale TAG, --category NAME, --preheader TEXT\n"
     "  --allow-category-change  publish with another category than the template has (which is the default)\n"
     "  --priority NAME          of notifications that name none\n"
     "  --supersedes X.Y.Z       default: the highest active version below it\n"
     "  --source NAME            platform, tenant or ai_drafted\n"
     "  --approved-by NAME       an ai_drafted version needs an approver to become active\n"
     "  --provenance TEXT, --by NAME   where it came from, and who publishes it", cmd_template_put, "Templates and triggers"},
    {"template list", "", 0, 0, "channel= platform json", "list the templates, each key on each of its channels, with the active version\n"
     "  --channel NAME   only those of this channel\n  --platform       those of every tenant", cmd_template_list, NULL},
    {"template show", "KEY", 1, 1, "version= channel= platform json", "show a version with its content\n"
     "  --version X.Y.Z   default: the active one\n"
     "  --channel NAME    required only when the key has several\n  --platform        the platform's, not the tenant's", cmd_template_show, NULL},
    {"template history", "KEY", 1, 1, "channel= platform json", "list all versions of a template: status, publisher, time\n"
     "  --channel NAME   required only when the key has several\n  --platform       the platform's, not the tenant's", cmd_template_history, NULL},
    {"template activate", "KEY VERSION", 2, 2, "channel= approved-by= allow-category-change platform json", "make a draft active\n"
     "  --channel NAME            required only when the key has several\n"
     "  --approved-by NAME        of an ai_drafted version\n"
     "  --allow-category-change   also when the template's category changes by it\n"
     "  --platform                the platform's, not the tenant's", cmd_template_activate, NULL},
    {"template deprecate", "KEY VERSION", 2, 2, "channel= at= withdraw platform json",
     "warn callers of a version, which is sent all the same\n"
     "  --at TIME        from when, RFC 3339 (default: now)\n  --withdraw       it is not deprecated after all\n"
     "  --channel NAME   required only when the key has several\n  --platform       the platform's, not the tenant's", cmd_template_deprecate, NULL},
    {"template archive", "KEY VERSION", 2, 2, "channel= allow-category-change platform json", "take a version out of use; notifications accepted with it are still sent\n"
     "  --channel NAME            required only when the key has several\n"
     "  --allow-category-change   also when the version below it has another category\n"
     "  --platform                the platform's, not the tenant's", cmd_template_archive, NULL},
    {"template preview", "KEY", 1, 1, "version= channel= locale= data= platform json",
     "render a version with its sample data, and show warnings\n  --data FILE.json   instead of the sample\n"
     "  --locale TAG, --version X.Y.Z\n  --channel NAME     required only when the key has several\n"
     "  --platform         the platform's, not the tenant's", cmd_template_preview, NULL},
    {"template test-send", "KEY", 1, 1, "to=! version= channel= locale= data= platform json",
     "send a version with its sample data to an address of your own\n  --to ADDRESS       where to\n"
     "  --data FILE.json   instead of the sample\n  --locale TAG, --version X.Y.Z\n"
     "  --channel NAME     required only when the key has several\n"
     "  --platform         the platform's, not the tenant's", cmd_template_test_send, NULL},
    {"template render", "", 0, 0, "file=! data= partial= locale= zone= strict plain json",
     "render a template file without a server\n"
     "  --file FILE                    the template\n"
     "  --data FILE.json               its variables\n"
     "  --partial NAME=FILE            repeatable; a partial that is not given is empty\n"
     "  --locale TAG, --zone NAME      for numbers, dates and plurals (default en-US, UTC)\n"
     "  --strict                       a missing variable is an error\n"
     "  --plain                        no HTML escaping", cmd_template_render, NULL},
    {"asset put", "NAME", 1, 1, "file=! json", "store an image that templates show by {{asset \"NAME\"}}; mails that were sent keep the one before\n"
     "  --file FILE   PNG, JPEG, GIF or WebP, at most 1 MiB", cmd_asset_put, NULL},
    {"asset list", "", 0, 0, "platform json", "list the images that templates can show, with their addresses\n"
     "  --platform   those of every tenant", cmd_asset_list, NULL},
    {"asset remove", "NAME", 1, 1, "json", "templates cannot show the image any more; mails that were sent still do", cmd_asset_remove, NULL},
    {"trigger put", "KEY", 1, 1,
     "file= event= template= resolver= channel= category= priority= name-path= locale-path= offset= anchor= subject-path= "
     "obsoleted-by= identity= keep-earlier disabled json",
     "turn a domain event into a notification; STENTOR_TENANT=platform: for every tenant\n"
     "  --file FILE          the trigger as JSON (trigger show --json prints one); the options overrule it\n"
     "  --event TYPE         the event (required)\n"
     "  --template KEY       the notification's content (required)\n"
     "  --resolver TEXT      who gets it (required): address:PATH, recipient:PATH, identity:TYPE:PATH, recipients:PATH,\n"
     "                       label:LABEL, or a name: primary_guest, tenant_admins, iam_subject, vendor_assignee, or one of\n"
     "                       `resolver list`\n"
     "  --anchor PATH        a date in the event; without it the time of the event\n"
     "  --offset S           send it so many seconds after the anchor, or before it (-86400)\n"
     "  --subject-path PATH  what the event is about: a newer event of the same subject supersedes what still waits\n"
     "  --keep-earlier       it does not: each event of a subject sends\n"
     "  --obsoleted-by TYPE  an event that cancels what still waits for the subject; repeatable\n"
     "  --identity trigger   send also when another trigger makes the same notification of the event (dunning steps)\n"
     "  --name-path PATH, --locale-path PATH   where the event has the display name and the locale\n"
     "  --channel NAME, --category NAME, --priority NAME\n"
     "  --disabled           it does nothing; a tenant's own disabled trigger also hides the platform's", cmd_trigger_put, NULL},
    {"trigger list", "", 0, 0, "json", "list the triggers of the tenant and of the platform, and which are in force", cmd_trigger_list, NULL},
    {"trigger show", "KEY", 1, 1, "json", "show the trigger that is in force", cmd_trigger_show, NULL},
    {"trigger delete", "KEY", 1, 1, "json", "delete the tenant's own trigger; a platform trigger with the same key is in force again", cmd_trigger_delete, NULL},
    {"trigger try", "KEY", 1, 1, "event-file=! message= json",
     "show the notification that a trigger would make of a sample event; sends nothing\n"
     "  --event-file FILE   the event as it would be published\n"
     "  --message NAME      the event is protobuf: stentor.v1.PlaceOrder", cmd_trigger_try, NULL},
    {"resolver put", "NAME", 1, 1, "rule=! json",
     "define whom triggers mean by a name; STENTOR_TENANT=platform: for every tenant\n"
     "  --rule TEXT   as --resolver of `trigger put`, but no name; repeatable: the first that finds a recipient counts", cmd_resolver_put, NULL},
    {"resolver list", "", 0, 0, "json", "list the names that triggers may use: the tenant's, the platform's, the built-in ones", cmd_resolver_list, NULL},
    {"resolver show", "NAME", 1, 1, "json", "show what the name means to the tenant's triggers", cmd_resolver_show, NULL},
    {"resolver remove", "NAME", 1, 1, "json", "remove the tenant's own resolver; the platform's or the built-in one is in force again", cmd_resolver_remove, NULL},

    {"tenant put", "TENANT", 1, 1,
     "name= sender= sender-name= reply-to= locale= time-zone= quiet-hours= limit-minute= limit-day= recipient-limit-minute= "
     "recipient-limit-day= over-limit= guardian-routing= physical-address= address-footer= shared-addresses= events= theme= retention= region= "
     "status= no-channel= channel= no-category= category= suspended no-suspended json",
     "create or change a tenant; settings that no option names stay\n"
     "  --name TEXT                      its display name\n"
     "  --sender ADDRESS                 From of its e-mails; the operator's key also verifies the domain\n"
     "  --sender-name TEXT               display name of the From\n"
     "  --reply-to ADDRESS               where replies to its e-mails go; '': to the sender\n"
     "  --locale TAG, --time-zone ZONE   for recipients without their own\n"
     "  --quiet-hours 22:00-07:00|none   for recipients without their own\n"
     "  --limit-minute N, --limit-day N  of all its notifications; 0: none; CHANNEL=N: of one channel, as well; repeatable\n"
     "  --recipient-limit-minute N, --recipient-limit-day N   of the notifications of one recipient; CHANNEL=N as above\n"
     "  --over-limit defer|suppress      what happens above a limit\n"
     "  --guardian-routing none|copy|redirect   for minors without their own\n"
     "  --physical-address TEXT          for the footer of e-mails\n"
     "  --address-footer opt_out|every   which e-mails show it: those that a recipient may opt out of (default), or transactional ones too\n"
     "  --shared-addresses allow|warn|refuse   of a recipient with an address that another one has (default warn)\n"
     "  --events sealed|clear            how EVENTS keeps its events: encrypted (default), or as they were published\n"
     "  --theme NAME=VALUE               {{theme.NAME}} in templates, repeatable; an empty value deletes it\n"
     "  --retention CATEGORY=CLASS       keep it as record, standard or brief; repeatable; an empty class deletes it\n"
     "  --region TEXT                    where it belongs, a note for operators\n"
     "  --no-channel NAME, --no-category NAME   it sends nothing on this channel, or of this category; --channel, --category: it does again;\n"
     "                                   repeatable\n"
     "  --status active|suspended|deleting   deleting: nothing new is accepted, what waits is not sent, its batches end\n"
     "  --suspended                      stop all its sending\n"
     "  --no-suspended                   let it send again", cmd_tenant_put, "Tenants and keys"},
    {"tenant list", "", 0, 0, "status= json", "list the tenants by name, with status and region\n"
     "  --status NAME   active, suspended or deleting", cmd_tenant_list, NULL},
    {"tenant show", "[TENANT]", 0, 1, "json", "show the settings of a tenant (default: STENTOR_TENANT)", cmd_tenant_show, NULL},
    {"tenant sender-domain", "add|remove TENANT DOMAIN | list [TENANT]", 1, 3, "json",
     "the domains that the From of a tenant may have: acme.test, or *.acme.test for every domain below it\n"
     "  Removing the domain of its sender removes the sender too; waiting mails with it fail with sender_unverified.", cmd_tenant_sender_domain, NULL},
    {"inbound put", "VENDOR", 1, 1, "public-key= secret= not-after= topic= number= revoke json",
     "store the keys with which a vendor proves its callbacks; what was stored before is replaced\n"
     "  --public-key BASE64      sendgrid: as its console shows it\n"
     "  --secret NAME=REFERENCE  all but sendgrid and ses: where the webhook-receiver reads the key: file:/PATH, env:NAME or exec:/PATH ARGUMENTS;\n"
     "                           repeatable: each is good. ses: a certificate to trust instead of the one that SNS names\n"
     "  --not-after NAME=TIME    the secret of that name is good until then: RFC 3339, or a span such as 7d; repeatable\n"
     "  --topic ARN              ses: an SNS topic that may call back; repeatable\n"
     "  --number ID              meta: phone_number_id of a number of the tenant's; repeatable\n"
     "  --revoke                 accept no more callbacks", cmd_inbound_put, NULL},
    {"inbound list", "", 0, 0, "json", "show for each vendor whether the tenant's callbacks are accepted, and by which keys", cmd_inbound_list, NULL},
    {"inbound url", "VENDOR", 1, 1, "base= json",
     "show the URL that the vendor is to call; it is a secret\n  --base URL   where the webhook-receiver is reached from outside: https://hooks.example.com",
     cmd_inbound_url, NULL},
    {"inbound rejected", "", 0, 0, "tenant= vendor= since= until= limit= json",
     "show callbacks that were refused: when, whose, why, and the SHA-256 of the body\n"
     "  --vendor NAME   only its\n"
     "  --since TIME    RFC 3339, or a span before now such as 2h (default: 7 days)\n"
     "  --until TIME    the same (default: now)\n"
     "  --limit N       at most this many, the oldest first (default: 100, at most 1000)\n"
     "  --tenant TENANT   only its (default: STENTOR_TENANT; none: of all)", cmd_inbound_rejected, NULL},
    {"mail-domain put", "DOMAIN", 1, 1, "dkim= bounce-domain= tracking-url= track-opens track-clicks json",
     "say how mails from a domain are signed and where their bounces come back to; of tenant platform: for every tenant\n"
     "  --dkim SELECTOR:KIND:REFERENCE   a key, repeatable; KIND is rsa or ed25519, REFERENCE where the dispatcher reads the\n"
     "                                   private key in PEM, below STENTOR_CREDENTIAL_DIRS: file:/run/secrets/s1.pem,\n"
     "                                   env:NAME or exec:/PATH ARGUMENTS\n"
     "  --bounce-domain DOMAIN           the return path becomes b+TOKEN@DOMAIN; its MX leads to webhook-receiver\n"
     "  --tracking-url URL               what links in mails begin with, such as https://links.example.com\n"
     "  --track-opens, --track-clicks    note that a mail was opened, a link clicked (off by default)",
     cmd_mail_domain_put, NULL},
    {"mail-domain list", "", 0, 0, "json", "list the domains that mails of the tenant are from, with their keys", cmd_mail_domain_list, NULL},
    {"mail-domain show", "DOMAIN", 1, 1, "json", "show what mails from the domain carry, and where DNS holds its public keys", cmd_mail_domain_show, NULL},
    {"mail-domain delete", "DOMAIN", 1, 1, "json", "mails from the domain are not signed here any more", cmd_mail_domain_delete, NULL},
    {"webhook create", "", 0, 0,
     "name=! url=! event= channel= category= rate-per-s= in-flight= disable-after= in-order idempotency-key= json",
     "post a tenant's events to an address, signed (Standard Webhooks); prints the secret that verifies them, this once\n"
     "  --name TEXT          for those who look after it\n"
     "  --url URL            https://, and only public addresses\n"
     "  --event NAME         repeatable: notification.delivered ..., notification.* (default: all)\n"
     "  --channel NAME, --category NAME   repeatable: only of these (default: all)\n"
     "  --rate-per-s N, --in-flight N     at most so many a second (default 25), on their way at once (8)\n"
     "  --disable-after N    failures in a row, from which on it is disabled (20)\n"
     "  --in-order           events of one notification one after the other\n"
     "  --idempotency-key TEXT   repeated with the same request, it gets the same answer; for a day with the secret",
     cmd_webhook_create, NULL},
    {"webhook put", "ID", 1, 1, "name=! url=! event= channel= category= rate-per-s= in-flight= disable-after= in-order json",
     "change a webhook; what is not given gets its default. State and secrets stay\n"
     "  --name TEXT, --url URL, --event NAME, --channel NAME, --category NAME   as for create\n"
     "  --rate-per-s N, --in-flight N, --disable-after N, --in-order   as for create", cmd_webhook_put, NULL},
    {"webhook list", "", 0, 0, "json", "list the tenant's webhooks", cmd_webhook_list, NULL},
    {"webhook show", "ID", 1, 1, "json", "show a webhook: what it gets, its state, when its secrets were made", cmd_webhook_show, NULL},
    {"webhook rotate", "ID", 1, 1, "grace= idempotency-key= json",
     "make a new secret and print it; both sign for a while\n"
     "  --grace SPAN             how long: 0s, 30m, 24h (default), 7d\n"
     "  --idempotency-key TEXT   repeated within a day, it gets the same secret", cmd_webhook_rotate, NULL},
    {"webhook enable", "ID", 1, 1, "json", "post to it again; what failed meanwhile is not posted by itself", cmd_webhook_enable, NULL},
    {"webhook disable", "ID", 1, 1, "reason= json", "post nothing to it until it is enabled\n  --reason TEXT   for those who ask why", cmd_webhook_disable, NULL},
    {"webhook delete", "ID", 1, 1, "json", "delete a webhook with its secrets", cmd_webhook_delete, NULL},
    {"webhook test", "ID", 1, 1, "json", "post an event webhook.test to a webhook; prints the delivery's id", cmd_webhook_test, NULL},
    {"webhook deliveries", "ID", 1, 1, "state= event= notification= limit= json",
     "list what was posted to a webhook, the youngest first\n"
     "  --state NAME        queued, claimed, waiting (it is tried again), delivered or failed\n"
     "  --event NAME        of this event, such as notification.delivered\n"
     "  --notification ID   of this notification\n"
     "  --limit N           at most N (default 100, 0: all)", cmd_webhook_deliveries, NULL},
    {"webhook delivery", "DELIVERY", 1, 1, "json", "show a delivery with its body and the endpoint's last answer", cmd_webhook_delivery, NULL},
    {"webhook replay", "DELIVERY", 1, 1, "json", "post a delivery again, at once; the receiver sees the same webhook-id", cmd_webhook_replay, NULL},
    {"webhook recover", "ID", 1, 1, "since=! json",
     "post again all that failed at a webhook\n  --since TIME   what was reported since then: RFC 3339, or a span before now such as 2d", cmd_webhook_recover, NULL},
    {"route put", "KEY", 1, 1,
     "file= vendor= fallback= channel= category= domain= country= fallback-on= unknown= position= max-vendors= settle-ms= disabled json",
     "say which vendors take a tenant's notifications; STENTOR_TENANT=platform: of every tenant without a route of its own\n"
     "  --vendor VENDOR[/CREDENTIAL][=WEIGHT]     repeatable: these share by weight; without a credential its active one\n"
     "  --fallback VENDOR[/CREDENTIAL][=WEIGHT]   what takes over, in this order; repeatable\n"
     "  --domain DOMAIN      only for recipients there: example.com, *.example.com\n"
     "  --country CODE       only for telephone numbers of this country: DE\n"
     "  --channel NAME, --category NAME   only for these (default: email, every category)\n"
     "  --position N         routes with a lower one are asked first (default 0)\n"
     "  --fallback-on LIST   unsent,config,elsewhere,open (default), retry, degraded\n"
     "  --unknown POLICY     park, resend, resend_or_failover, failover, count_as_sent (default: by category and channel)\n"
     "  --max-vendors N      that one notification may meet (default 2)\n"
     "  --settle-ms N        how long an unknown outcome waits for a callback first\n"
     "  --file FILE          the route as JSON (route show --json prints one); the options overrule it\n"
     "  --disabled           it is passed over", cmd_route_put, NULL},
    {"route list", "", 0, 0, "json", "list the routes of the tenant and of the platform, in the order in which they are asked", cmd_route_list, NULL},
    {"route show", "KEY", 1, 1, "json", "show a route", cmd_route_show, NULL},
    {"route delete", "KEY", 1, 1, "json", "delete the tenant's own route", cmd_route_delete, NULL},
    {"route compare", "KEY", 1, 1, "since= limit= json",
     "show what became of the messages at each vendor of a route: delivered, bounced, blocked, how long it took, what it costs\n"
     "  --since TIME   RFC 3339, or a span before now (default 24h, at most 31d); archived periods are not counted\n"
     "  --limit N      the newest N attempts of all its vendors together (default 100000, at most 1000000)\n"
     "  Of the tenant's messages, whichever route led to the vendor; STENTOR_TENANT=platform: of all tenants' messages.", cmd_route_compare, NULL},
    {"credential put", "VENDOR NAME", 2, 2, "reference= key-id= set= definition= rate-per-s= rate-per-day= json",
     "say where the dispatchers find a vendor's secret; a new one is staged: test it, then promote it\n"
     "  --reference REF      file:/PATH, env:NAME or exec:/PATH ARGUMENTS, on the dispatchers' hosts; never the secret itself;\n"
     "                       none for slack, discord and teams, whose addresses are secrets\n"
     "  --key-id TEXT        its public half, where there is one: an access key id\n"
     "  --set NAME=VALUE     what else the vendor needs: region=eu-west-1, domain=mg.example.com; repeatable\n"
     "  --definition FILE    of a vendor of your own, named CHANNEL-WORD (sms-acme): its requests and answers as JSON\n"
     "  --rate-per-s N, --rate-per-day N   most sends of all dispatchers together (default: no limit)", cmd_credential_put, NULL},
    {"credential list", "", 0, 0, "json", "list the credentials and their states", cmd_credential_list, NULL},
    {"credential show", "VENDOR NAME", 2, 2, "json", "show a credential", cmd_credential_show, NULL},
    {"credential promote", "VENDOR NAME", 2, 2, "json", "use it from now on; the one that was active ends what it began and is superseded", cmd_credential_promote, NULL},
    {"credential revoke", "VENDOR NAME", 2, 2, "json", "use it never again", cmd_credential_revoke, NULL},
    {"credential delete", "VENDOR NAME", 2, 2, "json", "delete a staged or revoked credential", cmd_credential_delete, NULL},
    {"vendor try", "VENDOR FILE", 2, 2, "set= status= body= json",
     "show the request that a definition makes of a sample; nothing is sent\n"
     "  --set NAME=VALUE   a setting as the credential will have it; repeatable\n"
     "  --status N --body TEXT   show what this answer would mean instead", cmd_vendor_try, NULL},
    {"channel list", "", 0, 0, "json", "list the vendors and how they stand: active, degraded, down, disabled", cmd_channel_list, NULL},
    {"channel suspend", "VENDOR", 1, 1, "reason=! until= json",
     "send nothing by this vendor: what may go by another one does, the rest waits\n"
     "  --reason TEXT   for those who ask why\n"
     "  --until TIME    RFC 3339, or a span from now such as 2h (default: until it is resumed)", cmd_channel_suspend, NULL},
    {"channel resume", "VENDOR", 1, 1, "json", "send by this vendor again", cmd_channel_resume, NULL},
    {"channel test", "VENDOR CREDENTIAL", 2, 2, "json",
     "ask the vendor whether it accepts a credential; sends no notification\n"
     "  It reads the secret where the command runs: run it on a dispatcher's host, as its user. apns and\n"
     "  webpush have no such call: their key is read and signs. Of a vendor by definition the\n"
     "  request of a sample is built, not sent. slack, discord and teams have no secret.", cmd_channel_test, NULL},
    {"apikey create", "", 0, 0, "name= scopes= expires= allow-from= tenant= json",
     "create an API key of the tenant; the key is shown once and stored hashed\n"
     "  --scopes LIST    with commas: send, read, manage, admin (default), a role (owner, developer, template-writer,\n"
     "                   support, viewer), or single ones such as recipients:reveal;\n"
     "                   keys:manage and, of tenant platform, operator must be named\n"
     "  --expires TIME   RFC 3339, or a span from now such as 90d (default: never)\n"
     "  --allow-from LIST   addresses and ranges that it may be used from, such as 10.0.0.0/8,192.0.2.7 (default: any)\n"
     "  --name TEXT, --tenant TENANT", cmd_apikey_create, NULL},
    {"apikey list", "", 0, 0, "all tenant= json",
     "list the API keys of the tenant, without their secrets\n"
     "  --all            revoked and expired ones too\n  --tenant TENANT  another tenant's", cmd_apikey_list, NULL},
    {"apikey rotate", "ID", 1, 1, "grace= name= scopes= expires= allow-from= tenant= json",
     "replace an API key; the old one stays in force for a while\n"
     "  --grace SPAN     how long: 0s, 30m, 24h (default), 7d\n"
     "  --scopes LIST, --name TEXT, --allow-from LIST   default: those of the old key\n"
     "  --expires TIME   default: after the same time as the old key\n"
     "  --tenant TENANT  another tenant's", cmd_apikey_rotate, NULL},
    {"apikey revoke", "ID", 1, 1, "tenant= json", "end an API key now: every replica refuses it within a second\n  --tenant TENANT   another tenant's", cmd_apikey_revoke, NULL},
    {"inbox-key create", "", 0, 0, "tenant= json",
     "create a key with which your server signs tokens for its users' inboxes; its secret is shown once (services/gateway/INBOX_TOKENS.md)\n"
     "  --tenant TENANT   another tenant's", cmd_inbox_key_create, NULL},
    {"inbox-key list", "", 0, 0, "tenant= json", "list the keys that sign inbox tokens of the tenant, without their secrets\n"
     "  --tenant TENANT   another tenant's", cmd_inbox_key_list, NULL},
    {"inbox-key rotate", "ID", 1, 1, "now tenant= json",
     "create a second signing key for your server to change to; the old one stays in force until it is revoked\n"
     "  --now             revoke the old one at once: its secret has leaked\n  --tenant TENANT   another tenant's", cmd_inbox_key_rotate, NULL},
    {"inbox-key revoke", "ID", 1, 1, "tenant= json", "end a signing key: every gateway refuses its tokens within a second\n"
     "  --tenant TENANT   another tenant's", cmd_inbox_key_revoke, NULL},
    {"console login", "", 0, 0, "name= role= tenant= json",
     "make a link that signs one person in at the console, once, within ten minutes\n"
     "  --name TEXT       who it is for, as the audit log names them (default: the user of this shell)\n"
     "  --role ROLE       operator (default), owner, developer, template-writer, support, viewer\n"
     "  --tenant TENANT   whose console; default: platform, of which an operator reaches every tenant's", cmd_console_login, NULL},
    {"console sessions", "", 0, 0, "limit= tenant= json",
     "list who is signed in at the console\n"
     "  --limit N         at most so many (default 100; 0: all)\n"
     "  --tenant TENANT   only at this tenant's", cmd_console_sessions, NULL},
    {"console revoke", "ID", 1, 1, "tenant= json", "end a session of the console now\n  --tenant TENANT   whose", cmd_console_revoke, NULL},
    {"apikey bootstrap", "", 0, 0, "name= expires= json",
     "create an operator's key without the API: the first one, or a new one when all are lost; shown once, stored hashed\n"
     "  Needs the NATS user stentor-admin. The key may act for every tenant (STENTOR_TENANT).\n"
     "  --expires TIME   RFC 3339, or a span from now such as 90d (default: never)\n"
     "  --name TEXT", cmd_apikey_bootstrap, NULL},

    {"recipient put", "[ID]", 0, 1,
     "identity= name= email= sms= whatsapp= push= inapp= voice= webhook= locale= time-zone= quiet-hours= minor guardian= "
     "guardian-routing= label= file= json",
     "store the whole record of a recipient; without ID a new one, or the one that has the identity\n"
     "  --identity TYPE:ID            guest, user, vendor or anonymous, and your own id of the recipient\n"
     "  --name TEXT, --locale TAG, --time-zone ZONE, --quiet-hours 22:00-07:00\n"
     "  --email ADDRESS, --sms NUMBER, --whatsapp NUMBER, --voice NUMBER, --push TOKEN, --inapp ID, --webhook URL   repeatable\n"
     "  --minor                       the recipient is a minor\n"
     "  --guardian ID, --guardian-routing none|copy|redirect\n"
     "  --label LABEL                 what you call the recipient, roles too: admin; repeatable\n"
     "  --file FILE.json              the record as the API takes it, instead of the options above", cmd_recipient_put, "Recipients"},
    {"recipient get", "[ID]", 0, 1, "address= identity= reveal json",
     "show a recipient by ID, or list those with an address or an identity\n"
     "  --address ADDRESS, --identity TYPE:ID   instead of ID\n"
     "  --reveal                                names and addresses whole, not masked", cmd_recipient_get, NULL},
    {"recipient delete", "ID", 1, 1, "json", "delete a recipient and everything that belongs to it", cmd_recipient_delete, NULL},
    {"recipient prefs", "ID", 1, 1, "set= file= unsubscribe resubscribe json",
     "show or change the preferences of a recipient\n"
     "  --set CATEGORY[/CHANNEL]=CHOICE   off, immediate, hourly, daily@08:30, weekly@08:30/5 (5: Friday) or clear; repeatable;\n"
     "                                    'any' stands for every category or channel\n"
     "  --file FILE.json                  replace the whole set\n"
     "  --unsubscribe, --resubscribe      from everything but critical and security", cmd_recipient_prefs, NULL},
    {"recipient consent", "ID", 1, 1, "grant= withdraw= source= json",
     "show or change the consents of a recipient\n"
     "  --grant CATEGORY[/CHANNEL], --withdraw CATEGORY[/CHANNEL]   repeatable\n"
     "  --source TEXT                                               where it was given (default: cli)", cmd_recipient_consent, NULL},
    {"recipient import", "FILE", 1, 1, "format= errors= patience= json",
     "store the recipients of a CSV or NDJSON file ('-': standard input)\n"
     "  An invalid line is named and left out; the exit status is then 1.\n"
     "  --format csv|ndjson   default: by the name of the file\n"
     "  --errors N            how many invalid lines are listed (default 20)\n"
     "  --patience SECONDS    how long to repeat a request while the API is away (default 60)", cmd_recipient_import, NULL},
    {"suppress list", "", 0, 0, "channel= reason= address= all limit= tenant= json",
     "list the addresses that get no mail\n"
     "  One of reason opt_out still gets what is transactional, security or compliance, also where CATEGORY is any.\n"
     "  --address ADDRESS   only this one\n"
     "  --channel NAME, --reason NAME   only those\n"
     "  --all               released and expired entries too\n"
     "  --limit N           at most N (default 100, 0: all)\n"
     "  --tenant TENANT     another tenant's; that of 'platform' is in force for every tenant", cmd_suppress_list, NULL},
    {"suppress add", "ADDRESS", 1, 1, "channel= category= reason= note= expires= tenant= json",
     "send no more to an address\n"
     "  --category NAME   only mails of this category (default: any)\n"
     "  --channel NAME    default email\n"
     "  --reason NAME     hard_bounce, complaint, invalid_address, opt_out, manual (default), compliance, rate_limit\n"
     "  --expires TIME    until then: RFC 3339, or a span from now such as 90d\n"
     "  --note TEXT, --tenant TENANT", cmd_suppress_add, NULL},
    {"suppress release", "[ID]", 0, 1, "address= channel= tenant= json",
     "send to an address again; the entry stays, with who released it and when\n"
     "  --address ADDRESS   all its entries on the channel, instead of one by ID\n"
     "  --channel NAME      default email\n  --tenant TENANT     another tenant's", cmd_suppress_release, NULL},
    {"suppress import", "FILE", 1, 1, "format= channel= category= reason= note= expires= dry-run tenant= json",
     "add the addresses of a CSV (with a header line) or NDJSON file ('-': standard input)\n"
     "  Columns: address or address_hash, channel, category, reason, note, expires_at; the options fill those that a line lacks.\n"
     "  --channel NAME, --category NAME, --reason NAME, --note TEXT, --expires TIME\n"
     "  --format csv|ndjson   default: by the name of the file\n"
     "  --dry-run             only check the lines\n"
     "  --tenant TENANT       another tenant's\n"
     "  An invalid line is named and left out; the exit status is then 1.", cmd_suppress_import, NULL},
    {"guard list", "", 0, 0, "all domain= provider= tenant= json",
     "show which marketing e-mails of the tenant are paused, for too many hard bounces or complaints\n"
     "  --all             pauses that were ended, too\n"
     "  --domain DOMAIN   of mails from this domain\n"
     "  --provider NAME   with --domain: to this provider's mailboxes: gmail.com, outlook.com ... other\n"
     "  --tenant TENANT   another tenant's", cmd_guard_list, NULL},
    {"guard resume", "", 0, 0, "domain= provider= tenant= json",
     "end pauses of the tenant's marketing e-mails; bounces and complaints before it count no more\n"
     "  --domain DOMAIN, --provider NAME   as of guard list; without them all pauses\n"
     "  --tenant TENANT   another tenant's", cmd_guard_resume, NULL},
    {"opt-out revoke", "", 0, 0, "recipient= notification= address= before= note= tenant= json",
     "end links in mails that were sent: unsubscribe, preferences and tracked links answer 404 from now on\n"
     "  --notification ID   of one mail\n"
     "  --recipient ID, --address ADDRESS   of all mails to it before now\n"
     "  --before TIME       of mails that were due before it (RFC 3339, or a span such as 2h); alone: of all mails of the tenant\n"
     "  --note TEXT, --tenant TENANT", cmd_opt_out_revoke, NULL},
    {"suppress export", "", 0, 0, "format= channel= reason= address= all tenant=",
     "print the list as CSV or NDJSON, fit for import: addresses are masked, their hashes are whole\n"
     "  --format csv|ndjson   default csv\n"
     "  --all                 released and expired entries too\n"
     "  --channel NAME, --reason NAME, --address ADDRESS, --tenant TENANT", cmd_suppress_export, NULL},

    {"doctor", "", 0, 0, "outbox-database= domain= selector= ip= public-url= server= json",
     "check NATS, Postgres, object storage, the API, every worker and projection, and how durable all is\n"
     "  --outbox-database URL  also the relays of the outboxes in this Postgres database; repeatable\n"
     "  --domain DOMAIN        instead: what mailbox providers demand of a domain that sends, asked of DNS: SPF, DKIM, DMARC, MX, PTR, one-click\n"
     "  --selector NAME        of a DKIM key, beside those in CONFIG; --ip ADDRESS of a server that hands mails over; both repeatable\n"
     "  --public-url URL       what unsubscribe links begin with; --server ADDRESS:PORT asks this DNS server\n"
     "  A warning leaves the exit status 0.", cmd_doctor, "Operate"},
    {"audit", "", 0, 0, "since= until= grace= tenant= limit= repair wait= json",
     "compare every record of every notification; names those that are lost, doubled or unknown (services/cli/AUDIT.md)\n"
     "  --since TIME, --until TIME   accepted between: RFC 3339, or a span ago such as 7d (default 24h to now)\n"
     "  --grace SECONDS              a notification that moved so recently is in flight, not lost (default 30)\n"
     "  --tenant TENANT              only this tenant's\n"
     "  --limit N                    list at most N findings (default 20, 0: all)\n"
     "  --repair                     publish lost notifications again from the accept log; nothing is sent twice\n"
     "  --wait SECONDS               how long the second audit waits for those (default 30)", cmd_audit, NULL},
    {"audit-log list", "", 0, 0, "since= kind= tenant= actor= action= target= json",
     "list what was done with personal data and the archive, and by the API, by whom and why (stream AUDIT)\n"
     "  --since TIME      RFC 3339, or a span ago such as 7d\n"
     "  --kind NAME       read, write, erasure, hold, restore, expiry, suppression or dead_letter\n"
     "  --tenant TENANT   only this tenant's\n"
     "  --actor WHO       such as 'key c7d493cc0defb307' or 'cli root'\n"
     "  --action WHAT     such as content.shown or 'PUT /v1/triggers/{}'\n"
     "  --target ID       about this notification, recipient or unit", cmd_audit_log_list, NULL},
    {"audit-log verify", "", 0, 0, "expect= json",
     "check the chain of the audit log: names what was changed or removed; exit status 1 when it is broken\n"
     "  --expect SEQUENCE:HASH   an earlier head, kept elsewhere, must stand in it", cmd_audit_log_verify, NULL},
    {"dlq list", "", 0, 0, "stage= since= limit= all-tenants json",
     "list the dead letters: events that a stage gave up, and why; with --json one object a line\n"
     "  --stage NAME    of one stage: " DLQ_STAGES "\n"
     "  --since TIME    RFC 3339, or a span ago such as 30m, 2h, 7d\n"
     "  --limit N       the newest N only\n"
     "  --all-tenants   not only those of STENTOR_TENANT", cmd_dlq_list, NULL},
    {"dlq show", "SEQUENCE|EVENT-ID|NOTIFICATION-ID", 1, 1, "all-tenants json",
     "show a dead letter with its reason, attempts and event; sealed fields stay sealed\n"
     "  --all-tenants   not only those of STENTOR_TENANT", cmd_dlq_show, NULL},
    {"dlq resend", "SEQUENCE... | --all", 0, ARGS_MAX, "all stage= since= all-tenants dry-run ignore-expiry may-double json",
     "have dead letters handled again, past the retry limits, and delete them (services/cli/DEADLETTERS.md)\n"
     "  --all                  every letter; --stage NAME and --since TIME select among them\n"
     "  --dry-run              only show what would be done\n"
     "  --ignore-expiry        also mails that have expired\n"
     "  --may-double           also mails that may have been sent already\n"
     "  --all-tenants          not only those of STENTOR_TENANT", cmd_dlq_resend, NULL},
    {"dlq drop", "SEQUENCE... | --all", 0, ARGS_MAX, "all stage= since= all-tenants dry-run yes json",
     "delete dead letters for good; their notifications end as failed\n"
     "  --all           every letter (needs --yes); --stage NAME and --since TIME select among them\n"
     "  --dry-run       only show what would be done\n"
     "  --all-tenants   not only those of STENTOR_TENANT", cmd_dlq_drop, NULL},
    {"replay", "", 0, 0,
     "stream= from-seq= from-time= last-per-subject from-archive to-seq= to-time= subject= to-service= to-subject= dry-run rate= tenant= all-tenants "
     "run= accept-again shadow template= subject-template= text= key= locale= limit= diffs= json",
     "read the past of a stream again, through a service (nothing is sent twice) or to a subject (services/cli/REPLAY.md)\n"
     "  --stream NAME                 REQUEST_NORMAL, RENDERED_LOW, STATUS ... (required)\n"
     "  --from-seq N, --from-time TIME, --last-per-subject   where it starts; TIME is RFC 3339 or a span ago such as 2h\n"
     "  --from-archive                what the stream has lost comes from object storage; a hole is an error\n"
     "  --to-seq N, --to-time TIME    where it ends (default: the end of the stream now)\n"
     "  --subject FILTER              only these subjects of the stream\n"
     "  --tenant TENANT, --all-tenants   whose messages (default: STENTOR_TENANT)\n"
     "  --to-service NAME             the service that reads the stream handles them again\n"
     "  --to-subject replay.NAME      plain messages for a subscriber of your own; nothing is stored\n"
     "  --dry-run                     only count\n"
     "  --rate N/s                    at most N a second\n"
     "  --run ID                      continue an interrupted replay: the same copies have the same ids\n"
     "  --accept-again                EVENTS: also commands older than 23 h, which become new notifications\n"
     "  --shadow                      render past requests with new content and print what differs; sends nothing\n"
     "  --template FILE               --shadow: the new html\n"
     "  --subject-template FILE, --text FILE   --shadow: the new subject and text\n"
     "  --key KEY                     --shadow: of the template (default: the name of the file up to the first dot)\n"
     "  --locale TAG                  --shadow: the variant that is replaced (default: the first of each version)\n"
     "  --limit N                     --shadow: read at most N requests of the template\n"
     "  --diffs N                     --shadow: print N differences (default 3)", cmd_replay, NULL},
    {"rebuild", "PROJECTION", 1, 1, "dry-run carry-older keep-old max-attempts= json",
     "make a projection (history, people, clock, feed, saga) again from the log: history is swapped in, of the others what differs is replaced.\n"
     "Its services run; order-saga has to stand still unless --dry-run is set. Nothing is sent (services/archiver/REBUILD.md)\n"
     "  --dry-run       compare with the live tables row by row instead; exit status 1 when they differ\n"
     "  --carry-older   first copy rows that may be older than the log from the live tables; pass over its holes\n"
     "  --keep-old      history: keep the former tables as schema archiver_old until the next rebuild\n"
     "  --max-attempts N   saga: its STENTOR_SAGA_MAX_ATTEMPTS (default 3)", cmd_rebuild, NULL},
    {"data-map", "", 0, 0, "json",
     "print every stream and table: what it is, which personal data it holds, how an erasure reaches it, where it is archived", cmd_data_map, NULL},
    {"shadow", "", 0, 0, "route=! last= lane= since= show= send from= tenant= ground=! requested-by= json",
     "build the last e-mails for the vendors of another route and show what these would have been sent; sends nothing\n"
     "  --route KEY           the route; its vendors' settings are used, no secret is read without --send\n"
     "  --last N              of so many e-mails (default 100, at most 1000)\n"
     "  --lane NAME           critical, high, normal (default) or low\n"
     "  --since TIME          RFC 3339, or a span before now (default 7d): where the search begins\n"
     "  --show N              print so many requests of each vendor, addresses masked (default 1)\n"
     "  --ground TEXT         why: kept in the audit log, so without an address\n"
     "  --requested-by WHO    who asked (default operator)\n"
     "  --tenant TENANT       default: STENTOR_TENANT\n"
     "  --send                give them to the vendors in the way that these have for trying, which sends nothing: sendgrid\n"
     "                        (sandbox_mode), mailgun (o:testmode, which it bills), postmark (its token for tests); others are built\n"
     "                        only. Each gets the content and the addresses. What it says is laid beside what became of each mail.\n"
     "                        It reads the secret where the command runs: run it on a dispatcher's host, as its user.\n"
     "  --from ADDRESS        sender of mails that name none: the dispatchers' STENTOR_MAIL_FROM (default no-reply@localhost)\n"
     "  For each vendor: how many it takes, and which fields of the others it cannot carry. Of an attachment its name and type\n"
     "  are built, with a text in the place of its bytes. Notifications of other channels are passed over.", cmd_shadow, NULL},
    {"content", "ID", 1, 1, "tenant= ground=! requested-by= kept json",
     "show what a notification's recipient was sent: subject, text, html; noted in the audit log before it is printed\n"
     "  --ground TEXT         why: kept in the audit log, so without an address\n"
     "  --requested-by WHO    who asked (default operator)\n"
     "  --kept                also what a legal duty keeps of an erased person\n"
     "  --tenant TENANT       default: STENTOR_TENANT\n"
     "  From RENDERED_*, and from object storage where STENTOR_STORAGE_URL is set; exit status 3 when it is not kept any more.", cmd_content, NULL},
    {"callbacks", "", 0, 0, "tenant= notification= since= until= limit= ground=! requested-by= json",
     "show vendors' callbacks as they came; noted in the audit log before they are printed\n"
     "  --notification ID     only those that name it\n"
     "  --since, --until TIME RFC 3339, or a span before now such as 2h (default: the last 7 days)\n"
     "  --limit N             at most N (default 20, at most 100), the oldest first\n"
     "  --ground TEXT         why: kept in the audit log, so without an address\n"
     "  --requested-by WHO    who asked (default operator)\n"
     "  --tenant TENANT       default: STENTOR_TENANT", cmd_callbacks, NULL},
    {"config export", "", 0, 0, "",
     "print CONFIG (tenants, API keys, templates, triggers, suppressions) as NDJSON with checksums, for a backup\n"
     "  The file holds hashes of API keys and addresses: keep it as a secret.", cmd_config_export, NULL},
    {"config import", "FILE", 1, 1, "dry-run force json",
     "publish the entries of an export that CONFIG lacks or has otherwise ('-': standard input); safe to repeat\n"
     "  --dry-run   only show what would be done\n"
     "  --force     also overwrite entries that were changed after the export; without it such an entry stops the import", cmd_config_import, NULL},
    {"config mend", "SUBJECT", 1, 1, "drop json",
     "restore the newest readable entry where the last one cannot be read (stentor doctor names such subjects)\n"
     "  --drop   when there is none: delete the unreadable ones", cmd_config_mend, NULL},
    {"keys status", "", 0, 0, "json", "show the registered master and hash keys, what still needs each, and the epochs", cmd_keys_status, NULL},
    {"keys rotate", "", 0, 0, "wait",
     "have the next epoch key made now, and all data keys wrapped by it (deploy/KEYS.md)\n"
     "  --wait   until that is done: a minute, and one more for each 10 million keys", cmd_keys_rotate, NULL},
    {"keys dump", "", 0, 0, "to=! keep-days= json", "write the data keys, wrapped, to a file, and read it back: apart from Postgres's backups (deploy/KEYS.md)\n"
     "  --to FILE       replaced if it is there\n"
     "  --to storage    an object in STENTOR_STORAGE_URL, keys-dumps/keys-TIME.dump\n"
     "  --keep-days N   there: delete older ones, by version, but never the newest (default 14)", cmd_keys_dump, NULL},
    {"keys restore", "FILE|storage", 1, 1, "dry-run json",
     "after a restore of an older backup of Postgres: bring the data keys to what the dump has; safe to repeat\n"
     "  Needs the role that owns the schemas, and that no service runs. storage: the newest object of STENTOR_STORAGE_URL.\n"
     "  --dry-run   only read the file, and check it", cmd_keys_restore, NULL},
    {"keys retire", "ID", 1, 1, "now", "declare that nothing needs a key any more, so that the key file may lose it\n"
     "  Needs the role that owns the schemas.\n"
     "  --now   a master key before its opt-out links have ended, or a hash key: what only it finds is not found any more", cmd_keys_retire, NULL},
    {"master-key", "", 0, 0, "", "print a new master key file: one master key, one hash key", cmd_master_key, NULL},
    {"master-key add", "", 0, 0, "kind=",
     "print the master key file with a new key behind the others; it opens and finds, but is not used yet\n"
     "  --kind master|hash   default master", cmd_master_key_add, NULL},
    {"master-key use", "ID", 1, 1, "", "print the master key file with this key as the current one of its kind", cmd_master_key_use, NULL},
    {"master-key remove", "ID", 1, 1, "", "print the master key file without this key, which must not be the current one", cmd_master_key_remove, NULL},
    {"erase", "", 0, 0, "tenant= recipient= identity= address= channel= ground=! requested-by= final json",
     "erase a person: destroy their data keys, so that what was sealed for them is unreadable wherever it lies (deploy/ERASURE.md)\n"
     "  --recipient ID            who; or --identity, or --address\n"
     "  --identity TYPE:ID        the application's own id: user:4711\n"
     "  --address ADDRESS         with the recipient that has it, if one has\n"
     "  --channel NAME            of --address (default email)\n"
     "  --ground TEXT             why: kept in the audit log, so without an address\n"
     "  --requested-by WHO        who asked (default operator)\n"
     "  --final                   also what STENTOR_LEGAL_DUTY keeps, or kept in an earlier erasure\n"
     "  --tenant TENANT           default: STENTOR_TENANT\n"
     "  Safe to repeat: it goes on where an earlier one was interrupted. Under a hold it restricts until the hold ends.", cmd_erase, NULL},
    {"erase run", "", 0, 0, "json", 
     "erase whom iam.user.deleted.v1 events name, and go on with erasures that were interrupted or whose hold or duty has ended; run it every hour",
     cmd_erase_run, NULL},
    {"erase list", "", 0, 0, "tenant= limit= json", "list the erasures, the youngest first\n"
     "  --tenant TENANT   only those of this tenant (default: of every one)\n"
     "  --limit N         at most N (default 100)", cmd_erase_list, NULL},
    {"erase replay", "", 0, 0, "json",
     "after a restore of Postgres: do again the erasures that AUDIT and the certificates' objects know, then let the services start\n"
     "  Restores lost certificates too, when STENTOR_STORAGE_URL is set.", cmd_erase_replay, NULL},
    {"erase verify", "ID", 1, 1, "text= no-certificate json",
     "read every table, stream, log segment and archived object for what an erasure left readable; exit status 1 when there is any\n"
     "  --text TEXT        also look for this text in clear; repeatable; it is kept nowhere\n"
     "  --no-certificate   only look\n"
     "  Checks the chain of certificates and, when nothing is readable and STENTOR_ERASURE_KEY_FILE is set, issues the one that is due.",
     cmd_erase_verify, NULL},
    {"erase certificate", "ID", 1, 1, "kind=", "print a certificate and its signature\n  --kind NAME   erasure (default) or final", cmd_erase_certificate, NULL},
    {"erase key", "", 0, 0, "public", "print a new key for certificates of erasure\n"
     "  --public   print the public half of STENTOR_ERASURE_KEY_FILE instead, in hex", cmd_erase_key, NULL},
    {"export", "", 0, 0, "tenant= recipient= identity= address= channel= out=! by= json",
     "write everything that is kept of a person into a file, opened: for the person (deploy/ERASURE.md)\n"
     "  --out FILE                JSON; FILE.zip: CSV tables in a ZIP archive\n"
     "  --recipient ID, --identity TYPE:ID, --address ADDRESS   who; one of them\n"
     "  --channel NAME            of --address (default email)\n"
     "  --by WHO                  who asked for it (default operator), for the audit log\n"
     "  --tenant TENANT           default: STENTOR_TENANT", cmd_export, NULL},
    {"hold set", "", 0, 0, "tenant= recipient= identity= address= channel= unit= ground=! by= until= json",
     "keep data from deletion: a tenant's, a person's, or an archived unit's; an erasure waits for the hold to end\n"
     "  --tenant TENANT           whose; with none of the next three, all of it\n"
     "  --recipient ID, --identity TYPE:ID, --address ADDRESS   one person of the tenant\n"
     "  --channel NAME            of --address (default email)\n"
     "  --unit UNIT               an archived unit (stentor archive list)\n"
     "  --ground TEXT             why: kept in the audit log, so without an address\n"
     "  --by WHO                  who holds it (default operator)\n"
     "  --until TIME              RFC 3339, or a span from now such as 30d (default: until it is released)", cmd_hold_set, NULL},
    {"hold list", "", 0, 0, "all json", "list the holds in force\n  --all   those that have ended too", cmd_hold_list, NULL},
    {"hold release", "ID", 1, 1, "by= json", "end a hold\n  --by WHO   who ends it (default operator)", cmd_hold_release, NULL},
    {"archive list", "", 0, 0, "json", "list the units (kind/class/month): state, since when, rows, bytes, what failed (deploy/ARCHIVE.md)", cmd_archive_list, NULL},
    {"archive show", "UNIT", 1, 1, "rows= json", "show a unit's objects, or rows of its first one\n"
     "  --rows N   the first N rows of the first object, an object of JSON a line; needs STENTOR_STORAGE_URL", cmd_archive_show, NULL},
    {"archive run", "[UNIT]", 0, 1, "older-than= json", "archive now what is due: write, verify, remove from Postgres; shows progress until it is done\n"
     "  --older-than SPAN   instead of the class's time in Postgres, counted from the month's end: 90d; 0: every month that is over", cmd_archive_run, NULL},
    {"archive verify", "[UNIT]", 0, 1, "json",
     "fetch, hash and decode every object of a unit or of all; compare the manifests; exit status 1 when one differs", cmd_archive_verify, NULL},
    {"archive restore", "UNIT", 1, 1, "until= json", "put a removed unit's rows into Postgres again, for a while\n"
     "  --until TIME   RFC 3339, or a span from now (default 7d)", cmd_archive_restore, NULL},
    {"archive expire", "[UNIT]", 0, 1, "json", "delete the objects of units whose class's time is over, now; never under a hold", cmd_archive_expire, NULL},
    {"archive orphans", "", 0, 0, "older-than= delete json", "list objects of this installation that no row names; needs STENTOR_STORAGE_URL\n"
     "  --older-than SPAN   default 7d: a younger one may be of a step under way\n"
     "  --delete            have the archiver delete them; SPAN is at least 1d", cmd_archive_orphans, NULL},
    {"archive adopt", "", 0, 0, "json",
     "make this database the owner of the bucket, whatever the bucket says: after a failover or a restore; every other copy stands still", cmd_archive_adopt, NULL},
    {"facts write", "", 0, 0, "day=! to= spool= json",
     "write the facts of a day to object storage, for analytics (common/facts); one that was written is replaced\n"
     "  --day DAY     of the notifications, in UTC: 2026-10-03\n"
     "  --to DAY      the last one of several\n"
     "  --spool DIR   room for one object at a time (default /tmp)", cmd_facts_write, NULL},
    {"costs set", "CHANNEL VENDOR", 2, 2, "price=! currency=! unit= country= category= tenant= from= json",
     "set what a vendor takes for a unit\n"
     "  --price AMOUNT      0.0079\n"
     "  --currency CODE     EUR\n"
     "  --unit UNIT         message (default), segment, minute or conversation\n"
     "  --country +DIGITS   for numbers that begin so: +43, +1242; the longest that fits counts (default: all)\n"
     "  --category NAME     of the vendor's own: marketing, utility (default: all)\n"
     "  --tenant TENANT     for this tenant alone (default: all)\n"
     "  --from TIME         attempts from then on (default: since the beginning of today)", cmd_costs_set, NULL},
    {"costs delete", "CHANNEL VENDOR", 2, 2, "from=! country= category= tenant= json",
     "delete a price that was set by mistake; the one before it counts again\n"
     "  --from TIME         since when it counts, as costs list shows it\n"
     "  --country +DIGITS, --category NAME, --tenant TENANT   as it was set (default: the one for all)", cmd_costs_delete, NULL},
    {"costs list", "", 0, 0, "json", "list the prices", cmd_costs_list, NULL},
    {"costs import-invoice", "FILE", 1, 1, "json",
     "import what vendors invoiced: CSV with the head day,channel,vendor,tenant,amount,currency; tenant * is shared out\n"
     "  A line that was imported before is replaced; one that is wrong imports nothing.", cmd_costs_import_invoice, NULL},
    {"outbox install", "", 0, 0, "mapping=! role= wake as-superuser json",
     "create Stentor's tables next to the outbox table of an application (services/cli/OUTBOX.md); safe to repeat\n"
     "  --mapping FILE   the table and how it is read\n"
     "  --role ROLE      grant the role of the relay the rights that it needs\n"
     "  --wake           add a trigger to the table: one NOTIFY per INSERT statement\n"
     "  --as-superuser   connect as a superuser all the same (all outbox commands): triggers of the application run with its rights", cmd_outbox_install, NULL},
    {"outbox check", "", 0, 0, "mapping=! role= as-superuser json",
     "check that a mapping fits its tables: columns, types, rights, index; exit status 1 when it does not\n"
     "  --mapping FILE   the mapping\n"
     "  --role ROLE      check as this role\n  --as-superuser   see outbox install", cmd_outbox_check, NULL},
    {"outbox show", "", 0, 0, "mapping=! role= limit= as-superuser json",
     "show the rows of an outbox table that wait, are claimed, failed or were rejected\n"
     "  --mapping FILE   the mapping\n"
     "  --limit N        failed and rejected rows to list (default 20)\n  --role ROLE, --as-superuser   see outbox check", cmd_outbox_show, NULL},
    {"outbox retry", "[KEY ...]", 0, 60, "mapping=! role= all-refused failed force as-superuser json",
     "publish rejected or failed rows again; exit status 3 when no KEY is such a row\n"
     "  --mapping FILE   the mapping\n"
     "  --all-refused, --failed   every rejected row; every failed one\n"
     "  --force          also rows that are under way or sent: these may be sent twice\n  --role ROLE, --as-superuser   see outbox check", cmd_outbox_retry, NULL},
};
// clang-format on

const int command_count = sizeof commands / sizeof *commands;
