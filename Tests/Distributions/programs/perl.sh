# packages: perl
# records: perl*
# status: 5
# version: perl -e 'print substr $^V, 1'
# quick
cat >main.pl <<'END'
use strict;
use warnings;
use POSIX qw(floor strftime fmod :sys_wait_h);
use Socket;
use List::Util qw(sum first shuffle reduce);
use Scalar::Util qw(blessed weaken);
use Data::Dumper;
use Digest::SHA qw(sha256_hex);
use Encode;
use Fcntl ':flock';
use IO::Handle;
use Storable qw(freeze thaw);
use Time::HiRes;

printf "%d %s %.3f\n", floor(3.7), strftime("%Y-%m-%d", gmtime 86400 * 365), fmod(10, 3.3);
print sum(1 .. 100), " ", first { $_ > 5 } (2, 4, 6, 8);
print " ", reduce { $a * $b } 1 .. 10;
print "\n", inet_ntoa(inet_aton("127.0.0.1")), "\n";

socketpair(my $one, my $other, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die;
$_->autoflush(1) for $one, $other;
my $child = fork;
if (!$child) { print $other uc(<$other>); exit 7 }
print $one "through a socket\n";
print scalar <$one>;
waitpid $child, 0;
print WEXITSTATUS($?), "\n";

my $copy = thaw freeze { list => [1 .. 5], name => encode("UTF-8", "\x{e9}t\x{e9}") };
local $Data::Dumper::Sortkeys = 1;
print Dumper($copy), sha256_hex(join ",", map { $_ * $_ } 1 .. 1000), "\n";
local $SIG{ALRM} = sub { die "alarm\n" };
eval { Time::HiRes::ualarm(1000); 1 while 1 };
print $@;
my ($text, %n) = join " ", 1 .. 2000;
$n{$1}++ while $text =~ /(\d\d)\b/g;
print join(",", map { "$_=$n{$_}" } (sort keys %n)[0 .. 9]), "\n";
eval "require Not::There" or print $@ =~ /^(Can't locate \S+)/, "\n";
exit 5;
END
perl main.pl
