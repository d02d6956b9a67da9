/* Preloaded into user-mode Linux that runs in virtual time, so that it repeats: its entropy comes from a seed, and nothing
   that comes from outside interrupts it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

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

/* Reading the link "requests" takes what comes through the pipe beside it, to the end of a batch. The whole guest is in this
   call meanwhile, so that no time of its own passes, and is told of no interrupt. */
ssize_t readlink(const char *path, char *buffer, size_t size)
{
	static const char name[] = "/requests";
	static int requests = -1;
	size_t length = strlen(path), tail = sizeof name - 1, at = 0;
	char beside[PATH_MAX];

	if (length < tail || strcmp(path + length - tail, name) != 0)
		return readlinkat(AT_FDCWD, path, buffer, size);
	if (requests < 0) {
		snprintf(beside, sizeof beside, "%s.pipe", path);
		requests = openat(AT_FDCWD, beside, O_RDONLY | O_CLOEXEC);
		if (requests < 0)
			return -1;
	}
	while (at + 1 < size) {
		ssize_t got = read(requests, buffer + at, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			errno = EIO;
			return -1;
		}
		/* End of transmission. */
		if (buffer[at++] == 4)
			break;
	}
	return (ssize_t)at;
}

/* The kernel's serial line is descriptor 0, a socket. While much is queued there, all of the guest waits: were there no room
   once, an interrupt would come when there is room again. */
ssize_t write(int fd, const void *buffer, size_t length)
{
	static const int most = 64 << 10;
	int queued;

	while (fd == 0 && ioctl(fd, SIOCOUTQ, &queued) == 0 && queued > most)
		usleep(100);
	return syscall(SYS_write, fd, buffer, length);
}
