/* Preloaded into user-mode Linux that runs in virtual time: its entropy comes from a seed, so that it repeats. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t next(uint64_t *state)
{
	uint64_t value = *state += 0x9e3779b97f4a7c15u;
	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
	value = (value ^ value >> 27) * 0x94d049bb133111ebu;
	return value ^ value >> 31;
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	static uint64_t state;
	static int begun;
	unsigned char *bytes = buffer;

	(void)flags;
	if (!begun) {
		const char *seed = getenv("STACKLAB_SEED");
		state = seed ? strtoull(seed, NULL, 10) : 0;
		begun = 1;
	}
	for (size_t at = 0; at < length; at++)
		bytes[at] = (unsigned char)next(&state);
	return (ssize_t)length;
}

/* The kernel's other source (CONFIG_UML_RANDOM) is not there. */
int open64(const char *path, int flags, ...)
{
	va_list more;
	int mode;

	if (strcmp(path, "/dev/random") == 0) {
		errno = ENOENT;
		return -1;
	}
	va_start(more, flags);
	mode = va_arg(more, int);
	va_end(more);
	return openat(AT_FDCWD, path, flags, mode);
}
