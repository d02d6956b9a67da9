// Interposed on write (LD_PRELOAD): each call spends DELAY_NS nanoseconds more. A real program made slower.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

ssize_t write(int file, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    static long delay;
    if (!real) {
        const char *text = getenv("DELAY_NS");
        delay = text ? atol(text) : 0;
        real = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    }
    ssize_t written = real(file, bytes, count);
    if (delay)
        for (long until = now() + delay; now() < until;);
    return written;
}
