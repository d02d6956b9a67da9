// A server and a client that ask and answer a number of times, for exact counts of instructions. The server executes a
// loop of LOOPS rounds for each answer, two instructions each: itself, in a process for each connection, or half of it in
// each of two threads at once.
//
//     planted serve|serve-in-child|serve-in-threads HOST PORT LOOPS     planted ask HOST PORT REQUESTS
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int fail(const char *what) {
    perror(what);
    return 1;
}

__attribute__((noinline)) void planted_loop(long rounds) {
    if (rounds > 0)
        __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds));
}

static void *loop_in_thread(void *rounds) {
    planted_loop(*(long *)rounds);
    return 0;
}

static int loop_in_threads(long rounds) {
    pthread_t threads[2];
    long half = rounds / 2;
    for (int number = 0; number < 2; number++)
        if (pthread_create(&threads[number], 0, loop_in_thread, &half) != 0) return fail("create a thread");
    for (int number = 0; number < 2; number++) pthread_join(threads[number], 0);
    return 0;
}

static int answer(int client, long rounds, int threads) {
    char asked;
    while (read(client, &asked, 1) == 1) {
        if (threads)
            loop_in_threads(rounds);
        else
            planted_loop(rounds);
        if (write(client, &asked, 1) != 1) return fail("write");
    }
    return 0;
}

static int serve(int listener, long rounds, const char *where) {
    int in_child = strcmp(where, "serve-in-child") == 0, in_threads = strcmp(where, "serve-in-threads") == 0;
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int client = accept(listener, 0, 0);
        if (client < 0) return fail("accept");
        if (!in_child)
            answer(client, rounds, in_threads);
        else if (fork() == 0)
            return answer(client, rounds, 0);
        close(client);
    }
}

static int ask(int server, long requests) {
    char answer = 'x';
    for (long number = 0; number < requests; number++)
        if (write(server, &answer, 1) != 1 || read(server, &answer, 1) != 1) return fail("ask");
    return 0;
}

int main(int count, char **words) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *address;
    if (count != 5 || getaddrinfo(words[2], words[3], &hints, &address) != 0) return 2;
    int one = 1, end = socket(address->ai_family, address->ai_socktype, 0);
    long number = atol(words[4]);
    if (strcmp(words[1], "ask") == 0)
        return connect(end, address->ai_addr, address->ai_addrlen) == 0 ? ask(end, number) : fail("connect");
    setsockopt(end, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(end, address->ai_addr, address->ai_addrlen) != 0 || listen(end, 5) != 0) return fail("listen");
    return serve(end, number, words[1]);
}
