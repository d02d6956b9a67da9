//! A multiplexer of several line-based streams over one channel. Each line is preceded by its stream's number and a
//! space.

use crate::hosted::batches::UnderWay;
use stacklab_testbed::Streams;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

/// The longest line, bytes: agents' longest answers with their stream's number.
const MAX_LINE_LENGTH: usize = 17 << 20;
/// Lines of one stream that wait for their reader. An agent has at most eight requests under way.
const MAX_WAITING: usize = 16;

/// The coordinator's end, with as many streams as the other end, in the same order. They end with the channel, with its
/// error if it has one.
pub(crate) fn open(
    channel: impl Read + Send + 'static,
    out: impl Write + Send + 'static,
    count: usize,
) -> Vec<Streams> {
    let out: Out = Arc::new(Mutex::new(Box::new(out)));
    let (senders, receivers): (Vec<_>, Vec<_>) =
        (0..count).map(|_| mpsc::sync_channel::<Vec<u8>>(MAX_WAITING)).unzip();
    let end: EndReason = Arc::default();
    let ended = Arc::clone(&end);
    thread::spawn(move || {
        let read = each_line(channel, |number, line| {
            if let Some(sender) = senders.get(number) {
                let _ = sender.send(line.to_vec());
            }
            Ok(())
        });
        if let Err(error) = read {
            let _ = ended.set(error.to_string());
        }
        // The streams end when the reason is there.
        drop(senders);
    });
    let mut streams: Vec<Streams> = Vec::with_capacity(count);
    for (number, lines) in receivers.into_iter().enumerate() {
        let read = Lines { lines, rest: VecDeque::new(), end: Arc::clone(&end) };
        let write = NumberedLine { number, out: Arc::clone(&out), line: Vec::new(), under_way: None };
        streams.push((Box::new(read), Box::new(write)));
    }
    streams
}

/// The other end: sends the streams' output over the channel and writes the channel's input to them. Returns when the
/// channel ends. What is under way may be counted.
pub(crate) fn serve(
    channel: impl Read,
    out: impl Write + Send + 'static,
    streams: Vec<Streams>,
    under_way: Option<Arc<UnderWay>>,
) -> io::Result<()> {
    let out: Out = Arc::new(Mutex::new(Box::new(out)));
    let mut inputs = Vec::new();
    for (number, (output, input)) in streams.into_iter().enumerate() {
        inputs.push(input);
        let out = Arc::clone(&out);
        let line = Vec::new();
        let mut numbered = NumberedLine { number, out, line, under_way: under_way.clone() };
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            let _ = io::copy(&mut output, &mut numbered);
        });
    }
    each_line(channel, |number, line| {
        let Some(input) = inputs.get_mut(number) else { return Ok(()) };
        if let Some(under_way) = &under_way {
            under_way.count_request();
        }
        input.write_all(line)?;
        input.flush()
    })
}

/// Takes each line of a channel, with its stream's number. `InvalidData`, which ends the channel, for a line that is
/// too long or has no number: guests' consoles write elsewhere.
pub(crate) fn each_line(
    channel: impl Read,
    mut take: impl FnMut(usize, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut channel = BufReader::new(channel);
    let mut line = Vec::new();
    loop {
        line.clear();
        if channel.by_ref().take(MAX_LINE_LENGTH as u64).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.len() == MAX_LINE_LENGTH && !line.ends_with(b"\n") {
            return Err(invalid(format!("a line of more than {MAX_LINE_LENGTH} bytes")));
        }
        let (number, content) =
            split_number(&line).ok_or_else(|| invalid("a line without a stream's number"))?;
        take(number, content)?;
    }
}

fn split_number(line: &[u8]) -> Option<(usize, &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    Some((std::str::from_utf8(&line[..space]).ok()?.parse().ok()?, &line[space + 1..]))
}

fn invalid(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

type Out = Arc<Mutex<Box<dyn Write + Send>>>;
/// Why the channel has ended.
type EndReason = Arc<OnceLock<String>>;

struct NumberedLine {
    number: usize,
    out: Out,
    line: Vec<u8>,
    /// Where each line is an answer that was sent.
    under_way: Option<Arc<UnderWay>>,
}

impl Write for NumberedLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend(piece);
            if piece.ends_with(b"\n") {
                let mut whole = format!("{} ", self.number).into_bytes();
                whole.append(&mut self.line);
                self.out.lock().unwrap_or_else(PoisonError::into_inner).write_all(&whole)?;
                if let Some(under_way) = &self.under_way {
                    under_way.count_answer();
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

struct Lines {
    lines: Receiver<Vec<u8>>,
    rest: VecDeque<u8>,
    end: EndReason,
}

impl Read for Lines {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let Ok(line) = self.lines.recv() else {
                return self.end.get().map_or(Ok(0), |reason| Err(io::Error::other(reason.clone())));
            };
            self.rest = line.into();
        }
        self.rest.read(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_line_without_end_ends_the_channel() {
        let mut taken = 0;
        let hostile = b"0 short\n".chain(io::repeat(b'x'));
        let error = each_line(hostile, |_, _| {
            taken += 1;
            Ok(())
        });
        assert_eq!((error.unwrap_err().kind(), taken), (io::ErrorKind::InvalidData, 1));
    }

    #[test]
    fn a_line_without_a_number_ends_the_channel() {
        for hostile in ["x 1\n", "12\n", "\n", " 1\n", "-1 1\n"] {
            let mut taken = Vec::new();
            let lines = format!("3 first\n{hostile}3 last\n");
            let error = each_line(lines.as_bytes(), |number, line| {
                taken.push((number, line.to_vec()));
                Ok(())
            });
            assert_eq!(error.unwrap_err().kind(), io::ErrorKind::InvalidData, "{hostile:?}");
            assert_eq!(taken, [(3, b"first\n".to_vec())], "{hostile:?}");
        }
    }

    #[test]
    fn what_goes_in_by_a_stream_comes_out_by_its_like() {
        let (near, far) = UnixStream::pair().unwrap();
        let pairs: Vec<(UnixStream, UnixStream)> = (0..3).map(|_| UnixStream::pair().unwrap()).collect();
        let mut agents = Vec::new();
        let streams = pairs.into_iter().map(|(agent, its)| -> Streams {
            agents.push(agent);
            (Box::new(its.try_clone().unwrap()), Box::new(its))
        });
        let streams: Vec<Streams> = streams.collect();
        let served = far.try_clone().unwrap();
        thread::spawn(move || serve(served.try_clone().unwrap(), served, streams, None));
        let mut ours = open(near.try_clone().unwrap(), near.try_clone().unwrap(), 3);
        for (number, ((read, write), agent)) in ours.iter_mut().zip(&agents).enumerate() {
            let mut agent = agent;
            write.write_all(format!("to {number}\nand").as_bytes()).unwrap();
            write.write_all(b" more\n").unwrap();
            let mut heard = vec![0; 14];
            agent.read_exact(&mut heard).unwrap();
            assert_eq!(heard, format!("to {number}\nand more\n").as_bytes());
            agent.write_all(format!("from {number}\n").as_bytes()).unwrap();
            let mut heard = vec![0; 7];
            read.read_exact(&mut heard).unwrap();
            assert_eq!(heard, format!("from {number}\n").as_bytes());
        }
        near.shutdown(std::net::Shutdown::Both).unwrap();
        assert_eq!(ours[0].0.read(&mut [0; 8]).unwrap(), 0, "the streams end with the channel");
    }

    #[test]
    fn every_stream_ends_with_the_channels_error() {
        let channel = b"1 first\nno number\n";
        let mut ours = open(&channel[..], io::sink(), 2);
        let mut text = String::new();
        for (read, _) in &mut ours {
            let error = read.read_to_string(&mut text).unwrap_err().to_string();
            assert!(error.contains("without a stream's number"), "{error}");
        }
        assert_eq!(text, "first\n");
    }
}
