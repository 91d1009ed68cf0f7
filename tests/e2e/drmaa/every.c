/* Every function, and every error code that a healthy cell can lead to. */
#include "check.h"

static drmaa_job_template_t *jt;

/* A template for a command with arguments, in place of the last one. */
static void command(const char *name, const char *first, const char *second) {
    const char *args[] = {first, second, NULL};
    if (jt != NULL)
        OK(drmaa_delete_job_template(jt, DIAG));
    OK(drmaa_allocate_job_template(&jt, DIAG));
    OK(drmaa_set_attribute(jt, DRMAA_REMOTE_COMMAND, name, DIAG));
    OK(drmaa_set_attribute(jt, DRMAA_OUTPUT_PATH, ":/dev/null", DIAG));
    OK(drmaa_set_attribute(jt, DRMAA_JOIN_FILES, "y", DIAG));
    OK(drmaa_set_vector_attribute(jt, DRMAA_V_ARGV, args, DIAG));
}

static void set(const char *name, const char *value) { OK(drmaa_set_attribute(jt, name, value, DIAG)); }

static const char *run(void) {
    static char id[DRMAA_JOBNAME_BUFFER];
    OK(drmaa_run_job(id, sizeof id, jt, DIAG));
    return id;
}

static int state(const char *id) {
    int state;
    OK(drmaa_job_ps(id, &state, DIAG));
    return state;
}

static void becomes(const char *id, int wanted) {
    for (int tries = 0; state(id) != wanted; tries++) {
        CHECK(tries < 600, "job %s is %#x, not %#x", id, state(id), wanted);
        usleep(50000);
    }
}

/* Waits for a job: exit status, signal, whether a core image was left, whether it was aborted. */
static void ends(const char *id, int code, int exit_status, const char *signal, int core, int aborted) {
    int stat = 0, value;
    char name[DRMAA_SIGNAL_BUFFER];
    FAILS(code, drmaa_wait(id, NULL, 0, &stat, 60, NULL, DIAG));
    OK(drmaa_wifexited(&value, stat, DIAG));
    CHECK(value == (exit_status >= 0), "job %s exited: %d", id, value);
    OK(drmaa_wexitstatus(&value, stat, DIAG));
    CHECK(exit_status < 0 || value == exit_status, "job %s has status %d", id, value);
    OK(drmaa_wifsignaled(&value, stat, DIAG));
    CHECK(value == (signal[0] != 0), "job %s was signaled: %d", id, value);
    OK(drmaa_wtermsig(name, sizeof name, stat, DIAG));
    CHECK(strcmp(name, signal) == 0, "job %s: signal %s", id, name);
    OK(drmaa_wcoredump(&value, stat, DIAG));
    CHECK(value == core, "job %s: core %d", id, value);
    OK(drmaa_wifaborted(&value, stat, DIAG));
    CHECK(value == aborted, "job %s: aborted %d", id, value);
}

static void without_session(void) {
    char text[DRMAA_CONTACT_BUFFER];
    unsigned int major, minor;
    int value;
    const char *ids[] = {"1", NULL};
    drmaa_attr_names_t *names;
    drmaa_job_ids_t *list;
    FAILS(5, drmaa_exit(DIAG));
    FAILS(5, drmaa_allocate_job_template(&jt, DIAG));
    FAILS(5, drmaa_get_attribute_names(&names, DIAG));
    FAILS(5, drmaa_get_vector_attribute_names(&names, DIAG));
    FAILS(5, drmaa_run_job(text, sizeof text, NULL, DIAG));
    FAILS(5, drmaa_run_bulk_jobs(&list, NULL, 1, 2, 1, DIAG));
    FAILS(5, drmaa_control("1", DRMAA_CONTROL_HOLD, DIAG));
    FAILS(5, drmaa_synchronize(ids, 0, 0, DIAG));
    FAILS(5, drmaa_wait("1", NULL, 0, NULL, 0, NULL, DIAG));
    FAILS(5, drmaa_job_ps("1", &value, DIAG));
    CHECK(strcmp(diag, "No active session") == 0, "%s", diag);
    OK(drmaa_get_contact(text, sizeof text, DIAG));
    CHECK(text[0] == 0, "contact %s", text);
    OK(drmaa_get_DRM_system(text, sizeof text, DIAG));
    CHECK(strncmp(text, "SGE", 3) == 0, "system %s", text);
    OK(drmaa_get_DRMAA_implementation(text, 4, DIAG));
    CHECK(strcmp(text, "SGE") == 0, "implementation %s", text);
    OK(drmaa_version(&major, &minor, DIAG));
    CHECK(major == 1 && minor == 0, "version %u.%u", major, minor);
    for (value = 0; value <= 25; value++)
        CHECK(drmaa_strerror(value) != NULL && drmaa_strerror(value)[0] != 0, "no text for %d", value);
    CHECK(drmaa_strerror(26) == NULL && drmaa_strerror(-1) == NULL, "a text for what is not a code");
    FAILS(4, drmaa_init("xyz", DIAG));
    FAILS(4, drmaa_init("session=", DIAG));
}

static void null_pointers(void) {
    const char *ids[] = {NULL};
    FAILS(4, drmaa_allocate_job_template(NULL, DIAG));
    FAILS(4, drmaa_delete_job_template(NULL, DIAG));
    FAILS(4, drmaa_delete_job_template((drmaa_job_template_t *)&ids, DIAG));
    FAILS(4, drmaa_set_attribute(jt, NULL, "x", DIAG));
    FAILS(4, drmaa_set_attribute(jt, DRMAA_WD, NULL, DIAG));
    FAILS(4, drmaa_set_attribute(NULL, DRMAA_WD, "x", DIAG));
    FAILS(4, drmaa_get_attribute(jt, DRMAA_WD, NULL, 0, DIAG));
    FAILS(4, drmaa_set_vector_attribute(jt, DRMAA_V_ENV, NULL, DIAG));
    FAILS(4, drmaa_get_vector_attribute(jt, DRMAA_V_ENV, NULL, DIAG));
    FAILS(4, drmaa_get_attribute_names(NULL, DIAG));
    FAILS(4, drmaa_get_vector_attribute_names(NULL, DIAG));
    FAILS(4, drmaa_get_next_attr_name(NULL, diag, sizeof diag));
    FAILS(4, drmaa_get_next_attr_value((drmaa_attr_values_t *)&ids, diag, sizeof diag));
    FAILS(4, drmaa_get_next_job_id(NULL, NULL, 0));
    FAILS(4, drmaa_get_num_attr_names(NULL, NULL));
    FAILS(4, drmaa_get_num_attr_values(NULL, NULL));
    FAILS(4, drmaa_get_num_job_ids(NULL, NULL));
    FAILS(4, drmaa_run_job(NULL, 0, NULL, NULL, 0));
    FAILS(4, drmaa_run_bulk_jobs(NULL, jt, 1, 2, 1, DIAG));
    FAILS(4, drmaa_control(NULL, 0, DIAG));
    FAILS(4, drmaa_synchronize(NULL, 0, 0, DIAG));
    FAILS(4, drmaa_wait(NULL, NULL, 0, NULL, 0, NULL, DIAG));
    FAILS(4, drmaa_job_ps("1", NULL, DIAG));
    FAILS(4, drmaa_job_ps(NULL, NULL, DIAG));
    FAILS(4, drmaa_wifexited(NULL, 0, DIAG));
    FAILS(4, drmaa_wexitstatus(NULL, 0, DIAG));
    FAILS(4, drmaa_wifsignaled(NULL, 0, DIAG));
    FAILS(4, drmaa_wtermsig(NULL, 0, 0, DIAG));
    FAILS(4, drmaa_wcoredump(NULL, 0, DIAG));
    FAILS(4, drmaa_wifaborted(NULL, 0, DIAG));
    FAILS(4, drmaa_get_contact(NULL, 0, DIAG));
    FAILS(4, drmaa_version(NULL, NULL, DIAG));
    FAILS(4, drmaa_get_DRM_system(NULL, 0, DIAG));
    FAILS(4, drmaa_get_DRMAA_implementation(NULL, 0, DIAG));
    drmaa_release_attr_names(NULL);
    drmaa_release_attr_values((drmaa_attr_values_t *)&ids);
    drmaa_release_job_ids(NULL);
}

static void attributes(void) {
    char value[DRMAA_ATTR_BUFFER], small[6] = "......";
    drmaa_attr_names_t *names;
    drmaa_attr_values_t *values;
    int size;
    OK(drmaa_get_attribute_names(&names, DIAG));
    OK(drmaa_get_num_attr_names(names, &size));
    CHECK(size == 13, "%d names", size);
    OK(drmaa_get_next_attr_name(names, value, sizeof value));
    CHECK(strcmp(value, DRMAA_BLOCK_EMAIL) == 0, "first name %s", value);
    for (size = 1; drmaa_get_next_attr_name(names, value, sizeof value) == 0; size++) {
    }
    CHECK(size == 13, "%d names were read", size);
    FAILS(25, drmaa_get_next_attr_name(names, value, sizeof value));
    drmaa_release_attr_names(names);
    drmaa_release_attr_names(names);
    FAILS(4, drmaa_get_next_attr_name(names, value, sizeof value));
    OK(drmaa_get_vector_attribute_names(&names, DIAG));
    OK(drmaa_get_num_attr_names(names, &size));
    CHECK(size == 3, "%d names of vectors", size);
    drmaa_release_attr_names(names);

    OK(drmaa_get_vector_attribute(jt, DRMAA_V_ARGV, &values, DIAG));
    OK(drmaa_get_num_attr_values(values, &size));
    CHECK(size == 2, "%d arguments", size);
    drmaa_release_attr_values(values);
    FAILS(14, drmaa_get_vector_attribute(jt, DRMAA_V_EMAIL, &values, DIAG));
    FAILS(14, drmaa_get_attribute(jt, DRMAA_WD, value, sizeof value, DIAG));
    FAILS(14, drmaa_get_attribute(jt, "unknown", value, sizeof value, DIAG));
    FAILS(4, drmaa_set_attribute(jt, "unknown", "x", DIAG));
    FAILS(4, drmaa_set_attribute(jt, DRMAA_TRANSFER_FILES, "ioe", DIAG));
    FAILS(14, drmaa_set_attribute(jt, DRMAA_JS_STATE, "x", DIAG));
    FAILS(14, drmaa_set_attribute(jt, DRMAA_JOIN_FILES, "maybe", DIAG));
    set(DRMAA_JOB_NAME, "0123456789");
    OK(drmaa_get_attribute(jt, DRMAA_JOB_NAME, small, 5, DIAG));
    CHECK(memcmp(small, "0123\0.", 6) == 0, "a short buffer holds %.6s", small);
    set(DRMAA_WD, "\xff\xe9");
    OK(drmaa_get_attribute(jt, DRMAA_WD, value, sizeof value, DIAG));
    CHECK(strcmp(value, "\xff\xe9") == 0, "bytes are lost");
}

static void refusals(void) {
    static const struct {
        const char *name, *value;
        int code;
        const char *text;
    } cases[] = {
        {DRMAA_NATIVE_SPECIFICATION, "-l nosuch=1", 17, "unknown resource \"nosuch\""},
        {DRMAA_NATIVE_SPECIFICATION, "-q nosuch.q", 17, "Job was rejected because job requests unknown queue \"nosuch.q\""},
        {DRMAA_NATIVE_SPECIFICATION, "-nosuchopt", 17, "invalid option argument \"-nosuchopt\"\n"},
        {DRMAA_NATIVE_SPECIFICATION, "-pe nosuch 2", 17, "nosuch"},
        {DRMAA_NATIVE_SPECIFICATION, "-P nosuch", 17, "nosuch"},
        {DRMAA_NATIVE_SPECIFICATION, "-l mem_total=9999G", 17, "no suitable queues"},
        {DRMAA_NATIVE_SPECIFICATION, "script", 17, "Unknown option script\n"},
        {DRMAA_JOB_NAME, "1x", 17, "is not a valid object name"},
        {DRMAA_JOB_CATEGORY, "nosuch", 17, "Unknown job category"},
        {DRMAA_OUTPUT_PATH, "/tmp/x", 4, "The \"drmaa_output_path\" attribute must begin with a colon, ':'"},
        {DRMAA_START_TIME, "x", 17, "Error parsing DRMAA date string"},
    };
    char id[DRMAA_JOBNAME_BUFFER];
    drmaa_job_ids_t *ids;
    for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
        command("/bin/true", NULL, NULL);
        set(cases[at].name, cases[at].value);
        FAILS(cases[at].code, drmaa_run_job(id, sizeof id, jt, DIAG));
        CHECK(strstr(diag, cases[at].text) != NULL, "%s %s: %s", cases[at].name, cases[at].value, diag);
    }
    command("/bin/true", NULL, NULL);
    FAILS(4, drmaa_run_bulk_jobs(&ids, jt, 5, 1, 1, DIAG));
    FAILS(4, drmaa_run_bulk_jobs(&ids, jt, 0, 3, 1, DIAG));
    FAILS(4, drmaa_run_bulk_jobs(&ids, jt, 1, 3, 0, DIAG));
    FAILS(4, drmaa_run_bulk_jobs(&ids, jt, 3, 1, -1, DIAG));
    FAILS(17, drmaa_run_bulk_jobs(&ids, jt, 1, 80000, 1, DIAG));
}

static void ways_to_end(void) {
    static const struct {
        const char *script;
        int status;
        const char *signal;
        int core;
    } cases[] = {
        {"exit 0", 0, "", 0},           {"exit 1", 1, "", 0},           {"exit 127", 127, "", 0},
        {"exit 129", 129, "", 0},       {"exit 255", 255, "", 0},       {"kill -KILL $$", -1, "SIGKILL", 0},
        {"kill -TERM $$", -1, "SIGTERM", 0}, {"ulimit -c 0; kill -SEGV $$", -1, "SIGSEGV", 1},
    };
    for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
        command("/bin/sh", "-c", cases[at].script);
        ends(run(), 0, cases[at].status, cases[at].signal, cases[at].core, 0);
    }
    command("/nonexistent", NULL, NULL);
    ends(run(), 0, -1, "", 0, 1);
    command("/bin/true", NULL, NULL);
    set(DRMAA_WD, "/nonexistent");
    ends(run(), 0, -1, "", 0, 1);
    command("/bin/true", NULL, NULL);
    set(DRMAA_OUTPUT_PATH, ":/nonexistent/x");
    ends(run(), 0, -1, "", 0, 1);
    command("/bin/true", NULL, NULL);
    set(DRMAA_INPUT_PATH, ":/nonexistent");
    ends(run(), 0, -1, "", 0, 1);
    command("/bin/sleep", "60", NULL);
    set(DRMAA_NATIVE_SPECIFICATION, "-l h_rt=1");
    ends(run(), 0, -1, "SIGKILL", 0, 0);
}

static void control(void) {
    const char *id;
    int state_of;
    command("/bin/sleep", "100", NULL);
    set(DRMAA_JS_STATE, DRMAA_SUBMISSION_STATE_HOLD);
    id = run();
    CHECK(state(id) == DRMAA_PS_USER_ON_HOLD, "a held job is %#x", state(id));
    FAILS(19, drmaa_control(id, DRMAA_CONTROL_RESUME, DIAG));
    FAILS(20, drmaa_control(id, DRMAA_CONTROL_SUSPEND, DIAG));
    OK(drmaa_control(id, DRMAA_CONTROL_HOLD, DIAG));
    OK(drmaa_control(id, DRMAA_CONTROL_RELEASE, DIAG));
    OK(drmaa_control(id, DRMAA_CONTROL_RELEASE, DIAG));
    becomes(id, DRMAA_PS_RUNNING);
    OK(drmaa_control(id, DRMAA_CONTROL_HOLD, DIAG));
    CHECK(state(id) == DRMAA_PS_USER_ON_HOLD, "a held running job is %#x", state(id));
    OK(drmaa_control(id, DRMAA_CONTROL_RELEASE, DIAG));
    OK(drmaa_control(id, DRMAA_CONTROL_SUSPEND, DIAG));
    CHECK(state(id) == DRMAA_PS_USER_SUSPENDED, "a suspended job is %#x", state(id));
    FAILS(20, drmaa_control(id, DRMAA_CONTROL_SUSPEND, DIAG));
    OK(drmaa_control(id, DRMAA_CONTROL_RESUME, DIAG));
    CHECK(state(id) == DRMAA_PS_RUNNING, "a resumed job is %#x", state(id));
    FAILS(19, drmaa_control(id, DRMAA_CONTROL_RESUME, DIAG));
    FAILS(23, drmaa_wait(id, NULL, 0, NULL, DRMAA_TIMEOUT_NO_WAIT, NULL, DIAG));
    FAILS(23, drmaa_wait(id, NULL, 0, NULL, 1, NULL, DIAG));
    OK(drmaa_control(id, DRMAA_CONTROL_TERMINATE, DIAG));
    ends(id, 0, -1, "", 0, 1);

    set(DRMAA_JS_STATE, DRMAA_SUBMISSION_STATE_HOLD);
    id = run();
    OK(drmaa_control(id, DRMAA_CONTROL_TERMINATE, DIAG));
    CHECK(state(id) == DRMAA_PS_FAILED, "a deleted job is %#x", state(id));
    ends(id, 24, -1, "", 0, 1);
    FAILS(18, drmaa_job_ps(id, &state_of, DIAG));
    FAILS(18, drmaa_control(id, DRMAA_CONTROL_TERMINATE, DIAG));
    CHECK(strcmp(diag, "There are no jobs registered") == 0, "%s", diag);
    FAILS(18, drmaa_control("999999", DRMAA_CONTROL_TERMINATE, DIAG));
    FAILS(4, drmaa_control("abc", DRMAA_CONTROL_TERMINATE, DIAG));
    FAILS(4, drmaa_control("1", 9, DIAG));
    FAILS(18, drmaa_job_ps("999999", &state_of, DIAG));
    FAILS(4, drmaa_job_ps("x", &state_of, DIAG));
    FAILS(4, drmaa_wait("xyz", NULL, 0, NULL, 1, NULL, DIAG));
    CHECK(strcmp(diag, "Job id, \"xyz\", is not a valid job id") == 0, "%s", diag);
    FAILS(18, drmaa_wait("999999", NULL, 0, NULL, 1, NULL, DIAG));
    FAILS(4, drmaa_wait("1", NULL, 0, NULL, -7, NULL, DIAG));
}

static void bulk(void) {
    const char *list[] = {NULL, NULL, NULL, NULL, NULL}, *all[] = {DRMAA_JOB_IDS_SESSION_ALL, NULL};
    char ids[5][DRMAA_JOBNAME_BUFFER], found[DRMAA_JOBNAME_BUFFER];
    drmaa_job_ids_t *job_ids;
    int size, seen = 0, stat, value;
    command("/bin/sh", "-c", "exit $SGE_TASK_ID");
    set(DRMAA_OUTPUT_PATH, work_path("bulk." DRMAA_PLACEHOLDER_INCR));
    OK(drmaa_run_bulk_jobs(&job_ids, jt, 1, 5, 2, DIAG));
    OK(drmaa_get_num_job_ids(job_ids, &size));
    CHECK(size == 3, "%d jobs", size);
    for (int at = 0; at < 3; at++) {
        OK(drmaa_get_next_job_id(job_ids, ids[at], sizeof ids[at]));
        list[at] = ids[at];
        CHECK(atoi(strchr(ids[at], '.') + 1) == 1 + 2 * at, "job %s", ids[at]);
    }
    FAILS(25, drmaa_get_next_job_id(job_ids, found, sizeof found));
    drmaa_release_job_ids(job_ids);
    OK(drmaa_synchronize(list, 60, 0, DIAG));
    CHECK(state(ids[0]) == DRMAA_PS_DONE, "a task is %#x", state(ids[0]));
    *strchr(strcpy(found, ids[0]), '.') = 0;
    FAILS(18, drmaa_job_ps(found, &value, DIAG));
    ends(ids[1], 0, 3, "", 0, 0);
    for (int at = 0; at < 2; at++) {
        OK(drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, found, sizeof found, &stat, 60, NULL, DIAG));
        OK(drmaa_wexitstatus(&value, stat, DIAG));
        seen += value;
    }
    CHECK(seen == 1 + 5, "statuses add up to %d", seen);
    FAILS(18, drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, found, sizeof found, &stat, 60, NULL, DIAG));
    CHECK(access("bulk.1", R_OK) == 0 && access("bulk.5", R_OK) == 0, "no outputs of tasks");

    command("/bin/sleep", "100", NULL);
    run();
    FAILS(23, drmaa_synchronize(all, 1, 1, DIAG));
    CHECK(diag[0] == 0, "a time-out says %s", diag);
    OK(drmaa_control(DRMAA_JOB_IDS_SESSION_ALL, DRMAA_CONTROL_TERMINATE, DIAG));
    OK(drmaa_synchronize(all, 60, 1, DIAG));
    FAILS(18, drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, NULL, 0, NULL, 0, NULL, DIAG));
    list[0] = "999999", list[1] = NULL;
    OK(drmaa_synchronize(list, 1, 0, DIAG));
    OK(drmaa_synchronize(list + 1, 1, 0, DIAG));
    list[0] = "abc";
    FAILS(4, drmaa_synchronize(list, 1, 0, DIAG));
}

static void sessions(void) {
    char contact[DRMAA_CONTACT_BUFFER], other[DRMAA_CONTACT_BUFFER];
    char one[DRMAA_JOBNAME_BUFFER], two[DRMAA_JOBNAME_BUFFER];
    FAILS(11, drmaa_init(NULL, DIAG));
    OK(drmaa_get_contact(contact, sizeof contact, DIAG));
    command("/bin/sh", "-c", "exit 4");
    strcpy(one, run());
    becomes(one, DRMAA_PS_DONE);
    command("/bin/sh", "-c", "until test -e go; do sleep 0.1; done; exit 5");
    set(DRMAA_WD, work_path(".") + 1);
    strcpy(two, run());
    OK(drmaa_exit(DIAG));
    OK(drmaa_delete_job_template(jt, DIAG));
    jt = NULL;

    OK(drmaa_init("", DIAG));
    OK(drmaa_get_contact(other, sizeof other, DIAG));
    CHECK(strcmp(contact, other) != 0, "two sessions are %s", other);
    FAILS(18, drmaa_wait(one, NULL, 0, NULL, 1, NULL, DIAG));
    FAILS(18, drmaa_wait(two, NULL, 0, NULL, 1, NULL, DIAG));
    becomes(two, DRMAA_PS_RUNNING);
    OK(drmaa_exit(DIAG));

    OK(drmaa_init(contact, DIAG));
    ends(one, 0, 4, "", 0, 0);
    FAILS(18, drmaa_wait(one, NULL, 0, NULL, 1, NULL, DIAG));
    fclose(fopen("go", "w"));
    ends(DRMAA_JOB_IDS_SESSION_ANY, 0, 5, "", 0, 0);
}

int main(void) {
    without_session();
    OK(drmaa_init(NULL, DIAG));
    command("/bin/sh", "-c", "x");
    null_pointers();
    attributes();
    refusals();
    ways_to_end();
    control();
    bulk();
    sessions();
    OK(drmaa_exit(DIAG));
    puts("passed");
    return 0;
}
