/* What the C programs of the DRMAA tests share: checks that say where they failed. They run in the
 * working directory of the test. */
#include <drmaa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((unused)) static __thread char diag[DRMAA_ERROR_STRING_BUFFER];

#define DIAG diag, sizeof diag

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #condition);                                                     \
            printf(__VA_ARGS__);                                                                                       \
            puts("");                                                                                                  \
            fflush(stdout);                                                                                            \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

#define FAILS(expected, call)                                                                                          \
    do {                                                                                                               \
        diag[0] = 0;                                                                                                   \
        int code_ = (call);                                                                                            \
        CHECK(code_ == (expected), "%s returned %d, not %d: %s", #call, code_, expected, diag);                        \
    } while (0)

#define OK(call) FAILS(DRMAA_ERRNO_SUCCESS, call)

/* A path in the working directory, as attributes take it. */
__attribute__((unused)) static const char *work_path(const char *name) {
    static __thread char path[4096];
    char here[2048];
    CHECK(getcwd(here, sizeof here) != NULL, "no working directory");
    snprintf(path, sizeof path, ":%s/%s", here, name);
    return path;
}

__attribute__((unused)) static void check_file(const char *name, const char *expected) {
    char found[4096];
    FILE *file = fopen(name, "r");
    CHECK(file != NULL, "no file %s", name);
    found[fread(found, 1, sizeof found - 1, file)] = 0;
    fclose(file);
    CHECK(strcmp(found, expected) == 0, "%s holds \"%s\"", name, found);
}
