/* THREADS threads submit JOBS jobs each and wait for them in three ways: each job is reaped once. The
 * test kills the master meanwhile. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

static int jobs, threads;
static atomic_int reaped, submitted;

static const char *submit(drmaa_job_template_t *jt, char *id) {
    OK(drmaa_run_job(id, DRMAA_JOBNAME_BUFFER, jt, DIAG));
    atomic_fetch_add(&submitted, 1);
    return id;
}

static void reap(const char *id, int code) {
    int found = drmaa_wait(id, NULL, 0, NULL, DRMAA_TIMEOUT_WAIT_FOREVER, NULL, DIAG);
    CHECK(found == code, "the wait for %s returned %d, not %d: %s", id, found, code, diag);
    if (found == 0 && (atomic_fetch_add(&reaped, 1) + 1) % 50 == 0) {
        puts("50 more");
        fflush(stdout);
    }
}

static void *worker(void *argument) {
    int number = *(int *)argument;
    drmaa_job_template_t *jt;
    char(*ids)[DRMAA_JOBNAME_BUFFER] = calloc(jobs, sizeof *ids);
    const char **list = calloc(jobs + 1, sizeof *list);
    OK(drmaa_allocate_job_template(&jt, DIAG));
    OK(drmaa_set_attribute(jt, DRMAA_REMOTE_COMMAND, "/bin/true", DIAG));
    OK(drmaa_set_attribute(jt, DRMAA_OUTPUT_PATH, ":/dev/null", DIAG));
    OK(drmaa_set_attribute(jt, DRMAA_JOIN_FILES, "y", DIAG));
    for (int at = 0; at < jobs; at++) {
        list[at] = submit(jt, ids[at]);
        /* Every other thread waits for its job at once. */
        if (number % 2 == 0)
            reap(ids[at], 0);
    }
    if (number % 2 == 1)
        OK(drmaa_synchronize(list, DRMAA_TIMEOUT_WAIT_FOREVER, 0, DIAG));
    for (int at = jobs - 1; at >= 0; at--)
        reap(ids[at], number % 2 == 0 ? DRMAA_ERRNO_INVALID_JOB : 0);
    OK(drmaa_delete_job_template(jt, DIAG));
    free(ids);
    free(list);
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 3, "threads THREADS JOBS");
    threads = atoi(argv[1]), jobs = atoi(argv[2]);
    pthread_t *all = calloc(threads, sizeof *all);
    int *numbers = calloc(threads, sizeof *numbers);
    OK(drmaa_init(NULL, DIAG));
    for (int at = 0; at < threads; at++) {
        numbers[at] = at;
        CHECK(pthread_create(&all[at], NULL, worker, &numbers[at]) == 0, "no thread");
    }
    for (int at = 0; at < threads; at++)
        pthread_join(all[at], NULL);
    CHECK(submitted == threads * jobs && reaped == submitted, "%d jobs, %d reaped", submitted, reaped);
    FAILS(DRMAA_ERRNO_INVALID_JOB, drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, NULL, 0, NULL, 0, NULL, DIAG));
    OK(drmaa_exit(DIAG));
    free(all);
    free(numbers);
    puts("passed");
    return 0;
}
