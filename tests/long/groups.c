/* maps: reserves 100 GB of address space, as Java and others do, and touches a page of each of the first 64.
   maps use BYTES: uses that much memory and waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int use(size_t size) {
    /* Volatile: memory that nobody reads is not left out. */
    volatile char *memory = malloc(size);
    if (!memory)
        return 1;
    for (size_t at = 0; at < size; at += 4096)
        memory[at] = 1;
    for (;;)
        pause();
}

int main(int count, char **words) {
    if (count == 3 && !strcmp(words[1], "use"))
        return use(strtoul(words[2], 0, 10));
    size_t size = 100UL << 30;
    char *map = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    for (size_t at = 0; at < 64; at++)
        map[at << 30] = 1;
    puts("mapped");
    return 0;
}
