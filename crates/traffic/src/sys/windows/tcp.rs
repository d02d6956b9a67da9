//! TCP information on Windows (SIO_TCP_INFO, since Windows 10 version 1703).

use super::raw;
use socket2::Socket;
use stacklab_model::TcpInfo;
use std::io;
use std::mem::size_of;
use windows_sys::Win32::Networking::WinSock::{SIO_TCP_INFO, TCP_INFO_v0, WSAEOPNOTSUPP, WSAIoctl};

/// Counters that have the same meaning as Linux's. Windows counts bytes, not segments.
pub(crate) fn tcp_info(socket: &Socket) -> io::Result<TcpInfo> {
    let info = ask(socket)?;
    let mss = u64::from(info.Mss);
    let some = |value: u32| (value > 0).then_some(u64::from(value));
    Ok(TcpInfo {
        snd_mss: some(info.Mss),
        rtt_us: some(info.RttUs),
        // Bytes, converted to full segments.
        snd_cwnd: u64::from(info.Cwnd).checked_div(mss),
        total_retrans: None,
        data_segs_out: None,
        data_segs_in: None,
        bytes_sent: Some(info.BytesOut),
        bytes_retrans: Some(info.BytesRetrans.into()),
        // The maximum value means that the connection has no measurement.
        min_rtt_us: some(info.MinRttUs).filter(|rtt| *rtt < u32::MAX.into()),
        srtt_mean_us: None,
    })
}

pub(crate) fn mss(socket: &Socket) -> io::Result<u32> {
    Ok(ask(socket)?.Mss)
}

fn ask(socket: &Socket) -> io::Result<TCP_INFO_v0> {
    let (version, mut info, mut filled) = (0_u32, TCP_INFO_v0::default(), 0_u32);
    let size = size_of::<TCP_INFO_v0>() as u32;
    // SAFETY: the socket is open for as long as it is borrowed; Winsock reads four bytes of `version` and writes at
    // most `size` bytes to `info`, which is that large, and one integer to `filled`; no operation is pending when it
    // returns, since it is given no overlapped structure. The structure's `bool` is one that Windows sets to 0 or 1.
    let result = unsafe {
        WSAIoctl(
            raw(socket),
            SIO_TCP_INFO,
            (&raw const version).cast(),
            size_of::<u32>() as u32,
            (&raw mut info).cast(),
            size,
            &raw mut filled,
            std::ptr::null_mut(),
            None,
        )
    };
    match result {
        0 if filled >= size => Ok(info),
        0 => Err(io::Error::other(format!("SIO_TCP_INFO filled {filled} of {size} bytes"))),
        _ => Err(match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(WSAEOPNOTSUPP) => {
                let text = "this system does not know SIO_TCP_INFO: Windows does from 10 version 1703 on";
                io::Error::new(io::ErrorKind::Unsupported, text)
            }
            error => error,
        }),
    }
}
