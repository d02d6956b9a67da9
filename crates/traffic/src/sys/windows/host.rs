//! Properties of this host.

use super::clock::frequency;
use stacklab_model::HostFacts;
use std::ffi::{CStr, c_char};
use std::mem::size_of;
use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RegGetValueW};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX, OSVERSIONINFOW};
use windows_sys::w;

pub(crate) fn host() -> HostFacts {
    HostFacts {
        os: "Windows".to_owned(),
        kernel: match wine() {
            // Wine's behaviour depends on the Linux kernel below it.
            Some(wine) => format!("{} (Wine {wine})", version()),
            None => version(),
        },
        machine: std::env::consts::ARCH.to_owned(),
        cpu_model: cpu_model().unwrap_or_default(),
        memory_kib: memory_kib(),
        clock_source: Some(format!("QueryPerformanceCounter, {} a second", frequency())),
        virtualised: hypervisor(),
        ..HostFacts::default()
    }
}

/// Major, minor and build number, as the kernel reports them.
fn version() -> String {
    let size = size_of::<OSVERSIONINFOW>() as u32;
    let mut version = OSVERSIONINFOW { dwOSVersionInfoSize: size, ..OSVERSIONINFOW::default() };
    // SAFETY: the call fills the structure, which states its size; it always succeeds.
    unsafe { RtlGetVersion(&raw mut version) };
    format!("{}.{}.{}", version.dwMajorVersion, version.dwMinorVersion, version.dwBuildNumber)
}

/// Wine's version, if this is Wine and not Windows.
fn wine() -> Option<String> {
    // SAFETY: the names end with a zero. The module is in every process and is not unloaded. The function exists only
    // in Wine, takes no arguments and returns static text that ends with a zero.
    unsafe {
        let module = GetModuleHandleW(w!("ntdll.dll"));
        let found = GetProcAddress(module, c"wine_get_version".as_ptr().cast())?;
        let version: unsafe extern "C" fn() -> *const c_char = std::mem::transmute(found);
        Some(CStr::from_ptr(version()).to_string_lossy().into_owned())
    }
}

fn cpu_model() -> Option<String> {
    let mut units = [0_u16; 128];
    let mut bytes = size_of_val(&units) as u32;
    // SAFETY: the names end with a zero; the call writes at most `bytes` bytes to `units`, which is that large, and one
    // integer; both outlive it.
    let result = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            w!("HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0"),
            w!("ProcessorNameString"),
            RRF_RT_REG_SZ,
            std::ptr::null_mut(),
            units.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    let length = units.iter().position(|unit| *unit == 0).unwrap_or(units.len());
    (result == 0).then(|| String::from_utf16_lossy(&units[..length]).trim().to_owned())
}

fn memory_kib() -> u64 {
    let size = size_of::<MEMORYSTATUSEX>() as u32;
    let mut memory = MEMORYSTATUSEX { dwLength: size, ..MEMORYSTATUSEX::default() };
    // SAFETY: the call fills the structure, which states its size.
    let succeeded = unsafe { GlobalMemoryStatusEx(&raw mut memory) };
    if succeeded == 0 { 0 } else { memory.ullTotalPhys / 1024 }
}

/// Whether the processor reports a hypervisor. This includes Windows' own, if Windows itself runs on it.
fn hypervisor() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::x86_64::__cpuid(1).ecx >> 31 == 1;
    #[cfg(not(target_arch = "x86_64"))]
    false
}
