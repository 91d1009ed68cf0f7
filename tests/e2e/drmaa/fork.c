/* A child of fork(2) has no session and can open one; the session of its parent goes on. */
#include "check.h"
#include <sys/wait.h>

static void run(char *id, const char *script) {
    const char *args[] = {"-c", script, NULL};
    drmaa_job_template_t *jt;
    OK(drmaa_allocate_job_template(&jt, DIAG));
    OK(drmaa_set_attribute(jt, DRMAA_REMOTE_COMMAND, "/bin/sh", DIAG));
    OK(drmaa_set_attribute(jt, DRMAA_OUTPUT_PATH, ":/dev/null", DIAG));
    OK(drmaa_set_attribute(jt, DRMAA_JOIN_FILES, "y", DIAG));
    OK(drmaa_set_vector_attribute(jt, DRMAA_V_ARGV, args, DIAG));
    OK(drmaa_run_job(id, DRMAA_JOBNAME_BUFFER, jt, DIAG));
    OK(drmaa_delete_job_template(jt, DIAG));
}

static void child(const char *of_parent) {
    char id[DRMAA_JOBNAME_BUFFER];
    FAILS(5, drmaa_wait(of_parent, NULL, 0, NULL, 1, NULL, DIAG));
    FAILS(5, drmaa_exit(DIAG));
    OK(drmaa_init(NULL, DIAG));
    run(id, "exit 6");
    FAILS(18, drmaa_wait(of_parent, NULL, 0, NULL, 1, NULL, DIAG));
    OK(drmaa_wait(id, NULL, 0, NULL, 60, NULL, DIAG));
    OK(drmaa_exit(DIAG));
    _exit(0);
}

int main(void) {
    char id[DRMAA_JOBNAME_BUFFER];
    int status;
    OK(drmaa_init(NULL, DIAG));
    run(id, "sleep 1; exit 5");
    pid_t pid = fork();
    CHECK(pid >= 0, "no process");
    if (pid == 0)
        child(id);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the child ended with %#x", status);
    OK(drmaa_wait(id, NULL, 0, NULL, 60, NULL, DIAG));
    OK(drmaa_exit(DIAG));
    puts("passed");
    return 0;
}
