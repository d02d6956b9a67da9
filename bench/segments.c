/* A plain sender of GSO batches (UDP_SEGMENT), 64 datagrams a call, and a receiver with GRO that only counts: what the kernel
 * lets through. For bench/segments.
 *
 *   segments send ADDRESS PORT BYTES SECONDS     prints datagrams sent
 *   segments receive PORT BYTES                  prints datagrams received, and seconds from the first receive to the last
 */
#define _GNU_SOURCE
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { TRAIN = 64, BATCH = 16, LONGEST = 65536 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static int failed(const char *what)
{
    perror(what);
    return 1;
}

static int send_trains(const char *address, const char *port, int bytes, double seconds)
{
    static char train[LONGEST];
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST}, *to;
    long sent = 0;
    if (getaddrinfo(address, port, &hints, &to))
        return failed(address);
    int udp = socket(to->ai_family, SOCK_DGRAM, 0);
    if (connect(udp, to->ai_addr, to->ai_addrlen) || setsockopt(udp, IPPROTO_UDP, UDP_SEGMENT, &bytes, sizeof bytes))
        return failed("UDP_SEGMENT");
    for (double end = now() + seconds; now() < end;)
        if (send(udp, train, (size_t)bytes * TRAIN, 0) > 0)
            sent += TRAIN;
    printf("%ld\n", sent);
    return 0;
}

static int receive_all(const char *port, int bytes)
{
    static char room[BATCH][LONGEST];
    static struct mmsghdr messages[BATCH];
    static struct iovec parts[BATCH];
    struct timeval first_wait = {10, 0}, silence = {0, 500000};
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(atoi(port))};
    int udp = socket(AF_INET6, SOCK_DGRAM, 0), on = 1, off = 0, buffer = 8 << 20, count;
    double first = 0, last = 0;
    long received = 0;
    setsockopt(udp, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    setsockopt(udp, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
    setsockopt(udp, SOL_SOCKET, SO_RCVTIMEO, &first_wait, sizeof first_wait);
    if (setsockopt(udp, IPPROTO_UDP, UDP_GRO, &on, sizeof on) || bind(udp, (struct sockaddr *)&any, sizeof any))
        return failed("receive");
    for (int i = 0; i < BATCH; i++) {
        parts[i] = (struct iovec){room[i], LONGEST};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
    while ((count = recvmmsg(udp, messages, BATCH, MSG_WAITFORONE, NULL)) > 0) {
        last = now();
        if (!received) {
            first = last;
            setsockopt(udp, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
        }
        for (int i = 0; i < count; i++)
            received += messages[i].msg_len / bytes;
    }
    printf("%ld %.6f\n", received, last - first);
    return 0;
}

int main(int count, char **words)
{
    if (count == 6 && !strcmp(words[1], "send"))
        return send_trains(words[2], words[3], atoi(words[4]), atof(words[5]));
    if (count == 4 && !strcmp(words[1], "receive"))
        return receive_all(words[2], atoi(words[3]));
    fprintf(stderr, "segments send ADDRESS PORT BYTES SECONDS | segments receive PORT BYTES\n");
    return 2;
}
