# Asks a server a number of times: client.pl HOST PORT COUNT
use strict;
use warnings;
use IO::Socket::IP;

my ($host, $port, $count) = @ARGV;
my $server = IO::Socket::IP->new(PeerHost => $host, PeerPort => $port) or die "cannot reach $host port $port: $@\n";
for (1 .. $count) {
    syswrite($server, '?');
    my $answer = '';
    while (length $answer < 100) {
        sysread($server, $answer, 100 - length $answer, length $answer) or die "the server has closed\n";
    }
}
print "$count answers\n";
