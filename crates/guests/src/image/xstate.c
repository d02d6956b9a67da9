/* Preloaded into user-mode Linux that is built here. Kernels before 6.13 know the size of a processor's extended state from when
   they are compiled. Processors with AMX have more, and ptrace sets all of it or nothing. A guest does not use what its kernel
   does not know, so that is zero. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long set_all(pid_t pid, const struct iovec *known)
{
	/* More than any processor has. */
	static _Alignas(64) unsigned char state[32 << 10];
	static size_t size;
	struct iovec all = { state, sizeof state };

	if (size == 0) {
		if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE, &all) != 0)
			return -1;
		size = all.iov_len;
		memset(state, 0, sizeof state);
	}
	if (known->iov_len >= size)
		return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, known);
	memcpy(state, known->iov_base, known->iov_len);
	all.iov_len = size;
	return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, &all);
}

long ptrace(enum __ptrace_request request, ...)
{
	long seen = 0;
	va_list more;
	va_start(more, request);
	pid_t pid = va_arg(more, pid_t);
	void *address = va_arg(more, void *);
	void *data = va_arg(more, void *);
	va_end(more);

	if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE)
		return set_all(pid, data);
	/* The system call writes what it peeks at; the function returns it. */
	if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER)
		return syscall(SYS_ptrace, request, pid, address, &seen) < 0 ? -1 : seen;
	return syscall(SYS_ptrace, request, pid, address, data);
}
