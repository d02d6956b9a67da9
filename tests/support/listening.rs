//! An agent of the real program that listens on a port chosen by the kernel.

use super::program::{KEY, Outcome, Program, Running, code};
use stacklab_agent::auth::handshake;
use stacklab_agent::channel::Channel;
use stacklab_agent::key::Key;
use std::net::TcpStream;
use std::time::Duration;

/// A listening agent.
pub(crate) struct Listening {
    pub program: Program,
    pub agent: Running,
    /// Its port, in the command line's format.
    pub port: String,
}

impl Listening {
    /// Starts an agent on a place without a port, such as `127.0.0.1` or `[::1]`; an empty place means any address.
    pub(crate) fn start(place: &str, options: &[&str]) -> Self {
        let program = Program::new();
        let place = format!("{place}:0");
        let agent = program.start(&[&["agent", "--listen", &place], options].concat());
        Self::of(program, agent)
    }

    /// Starts an agent on any address; its monotonic clock is this many seconds ahead of this machine's.
    pub(crate) fn with_a_clock_ahead(seconds: u32) -> Self {
        let program = Program::new();
        let ahead = seconds.to_string();
        let namespace = ["unshare", "--time", "--monotonic", &ahead, "--fork", "--kill-child", "sh", "-c"];
        let agent = program.started(program.script(&namespace, "exec \"$STACKLAB\" agent --listen :0"));
        Self::of(program, agent)
    }

    /// Starts an agent in the network namespace of a process.
    pub(crate) fn in_namespace(pid: &str, place: &str) -> Self {
        Self::in_namespace_with(pid, place, "")
    }

    /// The same with further options.
    pub(crate) fn in_namespace_with(pid: &str, place: &str, options: &str) -> Self {
        let program = Program::new();
        let shell = ["nsenter", "-t", pid, "-n", "sh", "-c"];
        let script = format!("exec \"$STACKLAB\" agent --listen '{place}:0' {options}");
        let agent = program.started(program.script(&shell, &script));
        Self::of(program, agent)
    }

    /// The outcome of a measurement to it, with these arguments.
    pub(crate) fn measure(&self, args: &[&str]) -> Outcome {
        self.program.run(&[&["measure"], args, &["-p", self.port.as_str()]].concat())
    }

    /// Fails unless this place can be measured to.
    pub(crate) fn serves(&self) {
        self.measure(&["tcp", "127.0.0.1", "-n", "10"]).expect(code::DONE);
    }

    /// A connection to it that has said nothing.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// A connection to it that it has let in, as a coordinator's.
    pub(crate) fn greeted(&self, host: &str) -> TcpStream {
        let stream = TcpStream::connect(format!("{host}:{}", self.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let key = Key::of(KEY, "the tests").unwrap();
        let channel = Channel::from(stream.try_clone().unwrap());
        handshake(&channel, Some(&key), Vec::new(), Duration::from_secs(30)).unwrap();
        stream
    }

    fn of(program: Program, mut agent: Running) -> Self {
        agent.wait_for("measures to it", Duration::from_secs(30));
        let said = agent.stderr();
        let after = said.split("-p ").nth(1).unwrap_or_else(|| panic!("no port is said: {said}"));
        let port = after.chars().take_while(char::is_ascii_digit).collect();
        Listening { program, agent, port }
    }
}
