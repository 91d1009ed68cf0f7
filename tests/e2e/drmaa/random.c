/* Random calls with random arguments, right and wrong: random SEED CALLS. Whatever they return, none
 * crashes, and every diagnosis ends within its buffer. */
#include "check.h"

static unsigned long long state;

static unsigned below(unsigned end) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)(state >> 20) % end;
}

static void *handles[16];
static char texts[16][64];
static char buffer[64];

static const char *text(void) {
    static const char *const fixed[] = {
        NULL, "", "1", "1.1", "0", "999999999999", "x", DRMAA_JOB_IDS_SESSION_ANY, DRMAA_JOB_IDS_SESSION_ALL, "session=a",
        DRMAA_REMOTE_COMMAND, DRMAA_JS_STATE, DRMAA_WD, DRMAA_OUTPUT_PATH, DRMAA_NATIVE_SPECIFICATION, DRMAA_V_ARGV,
        DRMAA_V_ENV, DRMAA_START_TIME, "/bin/true", ":/dev/null", "A=b", "-l h_rt=1 -h", "-q 'x", "\xff\x01", "$drmaa_hd_ph$",
        "drmaa_hold", "23:59", "-terse -sync y", "-@ /etc/passwd", "1.1-5",
    };
    unsigned at = below(sizeof fixed / sizeof fixed[0] + 16);
    return at < 16 ? texts[at] : fixed[at - 16];
}

static void *handle(void) {
    unsigned at = below(24);
    return at < 16 ? handles[at] : at < 20 ? NULL : (void *)(size_t)below(100000);
}

static void **place(void) { return below(8) == 0 ? NULL : &handles[below(16)]; }

static const char **list(void) {
    static const char *all[5];
    unsigned count = below(5);
    for (unsigned at = 0; at <= count; at++)
        all[at] = at < count ? text() : NULL;
    return below(8) == 0 ? NULL : all;
}

static int call(char *error, size_t len) {
    int value = 0;
    unsigned one, two;
    char *out = below(8) == 0 ? NULL : below(2) == 0 ? buffer : texts[below(16)];
    size_t room = below(4) == 0 ? below(2) : sizeof buffer;
    int number = (int)below(7) - 2;
    switch (below(34)) {
    case 0: return drmaa_init(below(4) == 0 ? text() : NULL, error, len);
    case 1: return below(8) == 0 ? drmaa_exit(error, len) : 0;
    case 2: return drmaa_allocate_job_template((drmaa_job_template_t **)place(), error, len);
    case 3: return drmaa_delete_job_template(handle(), error, len);
    case 4: return drmaa_set_attribute(handle(), text(), text(), error, len);
    case 5: return drmaa_get_attribute(handle(), text(), out, room, error, len);
    case 6: return drmaa_set_vector_attribute(handle(), text(), list(), error, len);
    case 7: return drmaa_get_vector_attribute(handle(), text(), (drmaa_attr_values_t **)place(), error, len);
    case 8: return drmaa_get_attribute_names((drmaa_attr_names_t **)place(), error, len);
    case 9: return drmaa_get_vector_attribute_names((drmaa_attr_names_t **)place(), error, len);
    case 10: return drmaa_get_next_attr_name(handle(), out, room);
    case 11: return drmaa_get_next_attr_value(handle(), out, room);
    case 12: return drmaa_get_next_job_id(handle(), out, room);
    case 13: return drmaa_get_num_attr_names(handle(), below(4) == 0 ? NULL : &value);
    case 14: return drmaa_get_num_attr_values(handle(), &value);
    case 15: return drmaa_get_num_job_ids(handle(), &value);
    case 16: drmaa_release_attr_names(handle()); return 0;
    case 17: drmaa_release_attr_values(handle()); return 0;
    case 18: drmaa_release_job_ids(handle()); return 0;
    case 19: return drmaa_run_job(out, room, handle(), error, len);
    case 20: return drmaa_run_bulk_jobs((drmaa_job_ids_t **)place(), handle(), number, number + 2, number, error, len);
    case 21: return drmaa_control(text(), number, error, len);
    case 22: return drmaa_synchronize(list(), 0, number, error, len);
    case 23: return drmaa_wait(text(), out, room, below(2) ? &value : NULL, 0, (drmaa_attr_values_t **)place(), error, len);
    case 24: return drmaa_wifexited(&value, number, error, len);
    case 25: return drmaa_wexitstatus(&value, (int)below(1u << 31), error, len);
    case 26: return drmaa_wifsignaled(&value, number, error, len);
    case 27: return drmaa_wtermsig(out, room, (int)below(1u << 31), error, len);
    case 28: return drmaa_wcoredump(&value, number, error, len);
    case 29: return drmaa_wifaborted(below(2) ? &value : NULL, number, error, len);
    case 30: return drmaa_job_ps(text(), &value, error, len);
    case 31: return drmaa_get_contact(out, room, error, len);
    case 32: return drmaa_version(&one, below(2) ? &two : NULL, error, len);
    default: return drmaa_strerror((int)below(40) - 5) == NULL ? 0 : drmaa_get_DRM_system(out, room, error, len);
    }
}

int main(int argc, char **argv) {
    char error[80];
    CHECK(argc == 3, "random SEED CALLS");
    state = strtoull(argv[1], NULL, 10) * 2654435769u + 1;
    for (long calls = atol(argv[2]); calls > 0; calls--) {
        size_t len = below(4) == 0 ? below(3) : 64;
        memset(error, '!', sizeof error);
        error[0] = 0;
        int code = call(below(8) == 0 ? NULL : error, len);
        CHECK(code >= 0 && code < DRMAA_NO_ERRNO, "code %d", code);
        CHECK(error[64] == '!', "a diagnosis of %zu bytes went on", len);
    }
    drmaa_exit(NULL, 0);
    puts("passed");
    return 0;
}
