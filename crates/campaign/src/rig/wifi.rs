//! A Wi-Fi network: station, access point, and station or wired host.

use crate::CampaignError;
use crate::rig::host_pair::{HostPair, Kernels, names, planned_path};
use crate::rig::{CellSet, CpuCover, Rig, RigKind, RigNetwork};
use crate::trial::Evidence;
use crate::trial::wifi::WifiEvidence;
use stacklab_guests::{WifiHosted, WifiSeen};
use stacklab_model::wifi::{Attachment, Security, WifiConfig};
use stacklab_model::{Cell, LinkConfig, Services, Systems, Topology};
use stacklab_store::HostRow;
use stacklab_study::Study;
use stacklab_testbed::Ticks;
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_trial::Path;
use stacklab_wifi::{self as network, Passphrase, WifiSpec};
use std::sync::atomic::AtomicBool;

/// The guest that has the programs of a Wi-Fi network.
const GUEST: &str = "uml-full";
/// The passphrase of networks that nobody else can reach.
const PASSPHRASE: &str = "stacklab stacklab";
/// How many times as long as elsewhere an answer is waited for in virtual time: a busy machine only makes it slow.
const TIMEOUT_FACTOR: u32 = 20;
/// The name of the access point, in the record and on the page.
pub const ACCESS_POINT: &str = "access point";

struct Wifi {
    network: WifiConfig,
    hosted: WifiHosted,
    access_point: AgentClient,
    /// The seed and the state when the trial began.
    before: Option<(u64, WifiSeen)>,
}

/// Builds a network of a study. Call it from the main thread.
pub(super) fn rig(
    study: &Study,
    network: WifiConfig,
    seed: u64,
    interrupted: &'static AtomicBool,
) -> Result<Rig, CampaignError> {
    let Topology::Wifi(of_study) = &study.topology else {
        return Err(CampaignError::Usage("the study has no Wi-Fi network".to_owned()));
    };
    let guest = GUEST.parse().expect("it is the name of a system");
    let (hosted, [sender, (read, write), receiver], _) =
        WifiHosted::boot(&guest, &spec(&network, seed)?, &crate::own_program()?, 0)?;
    let mut access_point = AgentClient::new(ACCESS_POINT, read, write, interrupted);
    access_point.hello()?;
    let receives = match network.settings.receiver {
        Attachment::Station => "station",
        Attachment::Wired => "wired host",
    };
    let kinds = ["station", receives].map(|what| format!("{what} in {}", hosted.version));
    let names = names(&Systems::NAMESPACES, &Services::default());
    let mut ends = HostPair::connect(&Systems::NAMESPACES, names, kinds, [sender, receiver], interrupted)?;
    if network.is_virtual() {
        access_point.be_patient(TIMEOUT_FACTOR);
        ends.agents().into_iter().for_each(|agent| agent.be_patient(TIMEOUT_FACTOR));
    }
    let is = RigKind {
        cells: CellSet::OfWifi(Box::new([of_study.clone(), network.clone()])),
        // What takes this machine's time takes none of a virtual clock's.
        here: !network.is_virtual(),
        in_guest: true,
        cubic: true,
        cpu: CpuCover::Outside,
        ..RigKind::default()
    };
    let seen = hosted.state.checks.iter().map(|check| {
        let bytes = check.hops.iter().flatten().map(|frame| frame.bytes.to_string());
        let bytes = bytes.collect::<Vec<_>>().join(" and ");
        format!("{} of {} bytes in frames of {bytes} bytes", check.family, check.packet)
    });
    let description = format!(
        "station - access point - {receives} inside {}, {network}, MTU {}; seen on the medium: {}",
        hosted.version,
        study.link_config.mtu,
        seen.collect::<Vec<_>>().join("; ")
    );
    Ok(Rig::new(ends, is, description, Wifi { network, hosted, access_point, before: None }))
}

fn spec(network: &WifiConfig, seed: u64) -> Result<WifiSpec, CampaignError> {
    let passphrase = Passphrase::try_from(PASSPHRASE.to_owned()).expect("it has 17 characters");
    let security = match network.security {
        Security::Open => network::Security::Open,
        Security::Wpa2 => network::Security::Wpa2(passphrase),
        Security::Wpa3 => network::Security::Wpa3(passphrase),
    };
    let mut settings = network.settings.clone();
    settings.seed = seed;
    let stations = [security.clone(), security.clone()];
    WifiSpec::new(settings, security, stations).map_err(|error| CampaignError::Usage(error.to_string()))
}

impl RigNetwork for Wifi {
    fn path(&self, link_config: &LinkConfig, cell: &Cell) -> Path {
        let addresses = WifiHosted::addresses(cell.family).map(Into::into);
        // The interfaces count what hosts ask for addresses too.
        let shared = self.network.settings.neighbour_lifetime_ns.is_some();
        Path { shared, ..planned_path(addresses, link_config, cell) }
    }

    fn add_hosts(&mut self, rows: &mut Vec<HostRow>, kernels: &mut Kernels) -> Result<(), AgentError> {
        let kind = format!("access point in {}", self.hosted.version);
        rows.insert(1, kernels.host(ACCESS_POINT.to_owned(), kind, &mut self.access_point)?);
        Ok(())
    }

    /// The medium's work, and that of all three hosts. Virtual time has no CPU time.
    fn guest_ticks(&self) -> [Option<Ticks>; 2] {
        [(!self.network.is_virtual()).then(|| Ticks::of(self.hosted.process())); 2]
    }

    fn begin(&mut self, _: &mut HostPair, seed: u64) -> Result<(), CampaignError> {
        self.before = Some((seed, self.hosted.look(Some(seed))?));
        Ok(())
    }

    fn end(&mut self, evidence: &mut [Evidence]) -> Result<(), CampaignError> {
        // The use of the channel in the windows of each host that received something.
        let reports = evidence.iter_mut().flat_map(|arm| arm.collected.reports.iter_mut());
        let received = reports.flatten().flatten().filter(|report| report.received.measured > 0);
        let mut received: Vec<_> = received.collect();
        let windows = received.iter().map(|report| report.windows()).collect();
        for (report, used) in received.iter_mut().zip(self.hosted.channel_use(windows)?) {
            report.channel = Some(used);
        }
        let (seed, before) = self.before.take().expect("a trial is begun before it is ended");
        let after = self.hosted.look(None)?;
        let seen = WifiEvidence { is_virtual: self.network.is_virtual(), seed, before, after };
        evidence.iter_mut().for_each(|arm| arm.wifi = Some(seen.clone()));
        Ok(())
    }
}
