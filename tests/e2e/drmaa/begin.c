/* The library from end to end: submits a job, waits for it and reads its usage. */
#include "check.h"

static void one_job(void) {
    drmaa_job_template_t *jt = NULL;
    drmaa_attr_values_t *usage = NULL;
    const char *args[] = {"-c", "cat; echo \"$KITX\"; exit 3", NULL}, *env[] = {"KITX=x=y z", NULL};
    char id[DRMAA_JOBNAME_BUFFER], out[DRMAA_JOBNAME_BUFFER], value[DRMAA_ATTR_BUFFER];
    int stat, exited, status, found = 0;

    OK(drmaa_allocate_job_template(&jt, DIAG));
    OK(drmaa_set_attribute(jt, DRMAA_REMOTE_COMMAND, "/bin/sh", DIAG));
    OK(drmaa_set_attribute(jt, DRMAA_INPUT_PATH, work_path("in"), DIAG));
    OK(drmaa_set_attribute(jt, DRMAA_OUTPUT_PATH, work_path("out"), DIAG));
    OK(drmaa_set_attribute(jt, DRMAA_JOIN_FILES, "y", DIAG));
    OK(drmaa_set_vector_attribute(jt, DRMAA_V_ARGV, args, DIAG));
    OK(drmaa_set_vector_attribute(jt, DRMAA_V_ENV, env, DIAG));
    OK(drmaa_run_job(id, sizeof id, jt, DIAG));
    OK(drmaa_wait(id, out, sizeof out, &stat, 60, &usage, DIAG));
    CHECK(strcmp(id, out) == 0, "%s is not %s", id, out);
    OK(drmaa_wifexited(&exited, stat, DIAG));
    OK(drmaa_wexitstatus(&status, stat, DIAG));
    CHECK(exited && status == 3, "exited %d, status %d", exited, status);
    while (drmaa_get_next_attr_value(usage, value, sizeof value) == DRMAA_ERRNO_SUCCESS)
        found += strcmp(value, "exit_status=3.0000") == 0 || strncmp(value, "ru_wallclock=", 13) == 0;
    CHECK(found == 2, "%d usage values found", found);
    drmaa_release_attr_values(usage);
    FAILS(DRMAA_ERRNO_INVALID_JOB, drmaa_wait(id, NULL, 0, NULL, 5, NULL, DIAG));
    OK(drmaa_delete_job_template(jt, DIAG));
    check_file("out", "from stdin\nx=y z\n");
}

int main(void) {
    char contact[DRMAA_CONTACT_BUFFER];
    OK(drmaa_init(NULL, DIAG));
    OK(drmaa_get_contact(contact, sizeof contact, DIAG));
    CHECK(strncmp(contact, "session=", 8) == 0, "contact %s", contact);
    one_job();
    OK(drmaa_exit(DIAG));
    FAILS(DRMAA_ERRNO_NO_ACTIVE_SESSION, drmaa_exit(DIAG));
    puts("passed");
    return 0;
}
