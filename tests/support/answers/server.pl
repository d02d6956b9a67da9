# A server that answers each byte with a hundred, after MICROSECONDS of CPU time: server.pl HOST PORT MICROSECONDS
use strict;
use warnings;
use IO::Socket::IP;
use Time::HiRes qw(clock_gettime CLOCK_PROCESS_CPUTIME_ID);

my ($host, $port, $microseconds) = @ARGV;
my $listener = IO::Socket::IP->new(LocalHost => $host, LocalPort => $port, Listen => 5, ReuseAddr => 1)
    or die "cannot listen on $host port $port: $@\n";
while (my $client = $listener->accept) {
    while (sysread($client, my $asked, 1)) {
        my $until = clock_gettime(CLOCK_PROCESS_CPUTIME_ID) + $microseconds / 1e6;
        1 while clock_gettime(CLOCK_PROCESS_CPUTIME_ID) < $until;
        syswrite($client, 'x' x 100);
    }
}
