//! The socket of a testbed's holder, by which commands reach a guest.

use stacklab_guests::shell;
use stacklab_testbed::Streams;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Says a line at the socket, which may be closed by then, and waits for an answer or the end.
const CLIENT: &str = r#"use Socket; alarm 10; $SIG{PIPE} = "IGNORE"; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die $!;
    connect($s, pack_sockaddr_un($ARGV[0])) or die $!;
    syswrite($s, "line\n"); my $answer; print sysread($s, $answer, 100) ? $answer : "the end";"#;

#[test]
fn other_user_reaches_no_guest_through_an_open_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("commands.sock");
    let (guest, holder) = UnixStream::pair().unwrap();
    let streams: Streams = (Box::new(holder.try_clone().unwrap()), Box::new(holder));
    shell::listen(&socket, vec![streams]).unwrap();
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    // As if the folder had not kept others out.
    for path in [folder.path(), &socket] {
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    let other = start_client("--reuid=65534", &socket).wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&other.stdout), "the end");
    guest.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut lines = BufReader::new(&guest);
    let mut line = String::new();
    assert!(lines.read_line(&mut line).is_err(), "the guest received {line}");
    guest.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let own = start_client("--reuid=0", &socket);
    assert!(lines.read_line(&mut line).is_ok() && !line.is_empty());
    (&guest).write_all(b"{\"ended\":7}\n").unwrap();
    let own = own.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&own.stdout).contains('7'), "{own:?}");
}

fn start_client(user: &str, socket: &Path) -> Child {
    let mut command = Command::new("setpriv");
    command.args([user, "--clear-groups", "perl", "-e", CLIENT]).arg(socket).stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// Listens at a path, says so, and then whether a client told it something.
const HOLDER: &str = r#"use Socket; $| = 1; alarm 10; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die $!;
    bind($s, pack_sockaddr_un($ARGV[0])) or die $!; listen($s, 1); print "up\n"; accept(my $c, $s);
    print sysread($c, my $line, 100) ? "line\n" : "nothing\n";"#;

#[test]
fn no_command_is_sent_to_another_users_socket() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let socket = folder.path().join("commands.sock");
    let mut holder = Command::new("setpriv");
    holder.args(["--reuid=65534", "--clear-groups", "perl", "-e", HOLDER]).arg(&socket);
    let mut holder = holder.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("up"));
    let refused = shell::enter_guest(&socket, 0, vec!["true".to_owned()], ("NAME", "value")).unwrap_err();
    assert!(refused.to_string().contains("is user 65534's"), "{refused}");
    assert_eq!(lines.next().as_deref(), Some("nothing"));
    holder.wait().unwrap();
}
