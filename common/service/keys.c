// SPDX-License-Identifier: Apache-2.0
// The master key at start: read from its file, and compared with what the installation has
// registered before anything is done with it. A wrong one would find nothing, and suppressed
// recipients would get mail.
#include <openssl/crypto.h>

#include "common/base/file.h"
#include "common/db/epochs.h"
#include "common/db/master_keys.h"
#include "common/service/internal.h"

enum { RETRY_MS = 500 };

static bool open_epochs(Service *service, Error *err)
{
    const char *folder = service->options.common->epoch_keys_dir;
    if (folder == NULL || folder[0] == '\0') {
        return true;
    }
    service->epochs = epoch_folder_open(folder, service->master_key, err);
    return service->epochs != NULL || error_wrap(err, "STENTOR_EPOCH_KEYS_DIR");
}

static bool read_master(Service *service, Error *err)
{
    const char *path = service->options.common->master_key_file;
    Buf text;
    buf_init(&text, MASTER_KEY_FILE_MAX);
    bool ok = file_append(path, &text, err);
    if (ok) {
        service->master_key = master_key_parse(buf_view(&text), err);
        ok = service->master_key != NULL || error_wrap(err, "'%s'", path);
    }
    if (text.ptr != NULL) {
        OPENSSL_cleanse(text.ptr, text.cap);
    }
    buf_done(&text);
    if (ok && !master_key_is_locked(service->master_key)) {
        LOG(LOG_WARN, "keys may be written to swap (HINT: raise RLIMIT_MEMLOCK)",
            log_text("file", path));
    }
    return ok || error_wrap(err, "STENTOR_MASTER_KEY_FILE");
}

bool keys_load(Service *service, Error *err)
{
    return read_master(service, err) && open_epochs(service, err);
}

static void refuse(Service *service, Error *err)
{
    (void)error_wrap(err, "master key file '%s'", service->options.common->master_key_file);
    service_wrong_options(service);
    service_fail(service, err);
}

bool service_check_keys(Service *service, const KeyRegister *keys)
{
    static const KeyRegister NONE = {.count = 0};
    Error err = {0};
    if (!key_register_check(keys != NULL ? keys : &NONE, service->master_key, &err)) {
        refuse(service, &err);
        return false;
    }
    service->keys_checked = true;
    return true;
}

static void on_timer_retry(uv_timer_t *timer)
{
    keys_begin_check(timer->data);
}

static bool is_over(const Service *service)
{
    return service->phase != PHASE_RUNNING || service->drain_wanted;
}

// What Postgres said: wrong for good, or to be asked again.
static void fail_read(Service *service, const Error *err)
{
    if (err->kind == ERROR_CONFIG) {
        Error wrong = *err;
        refuse(service, &wrong);
    } else {
        uv_timer_start(&service->key_timer, on_timer_retry, RETRY_MS, 0);
    }
}

static void on_gate_read(void *ctx, Str reason, const Error *err)
{
    Service *service = ctx;
    Error closed = {0};
    if (is_over(service)) {
        return;
    }
    if (err != NULL) {
        fail_read(service, err);
    } else if (reason.len > 0) {
        (void)error_set(&closed, ERROR_CONFIG, STR_FMT, STR_ARG(reason));
        service_wrong_options(service);
        service_fail(service, &closed);
    } else {
        service->keys_checked = true;
        bus_release(service->bus);
    }
}

static void on_epochs_read(void *ctx, const EpochRows *epochs, const Error *err)
{
    Service *service = ctx;
    Error missing = {0};
    if (is_over(service)) {
        return;
    }
    if (err != NULL) {
        fail_read(service, err);
    } else if (
        // One that was made since the folder was read is held now.
        master_epochs_refresh(service->master_key, &missing) &&
        epochs_check(epochs, service->master_key, &missing)) {
        gate_read(service->pool, on_gate_read, service);
    } else {
        service_wrong_options(service);
        service_fail(service, &missing);
    }
}

static void on_keys_read(void *ctx, const KeyRegister *keys, const Error *err)
{
    Service *service = ctx;
    if (is_over(service)) {
        return;
    }
    if (err != NULL) {
        fail_read(service, err);
    } else if (service_check_keys(service, keys)) {
        service->keys_checked = false; // not before the epoch keys are compared, too
        if (service->spec->opens_no_data_key) {
            gate_read(service->pool, on_gate_read, service);
        } else {
            epochs_read(service->pool, on_epochs_read, service);
        }
    }
}

void keys_begin_check(Service *service)
{
    if (!service->spec->wants_master_key) {
        service->keys_checked = true;
        bus_release(service->bus);
    } else if (service->pool != NULL) {
        master_keys_read(service->pool, on_keys_read, service);
    }
}
