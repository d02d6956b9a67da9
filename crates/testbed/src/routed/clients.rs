//! Guests in the places of the namespaces that are a row's clients.

use super::plan::{NEAR, Site, hardware_address};
use super::{Routed, lay};
use crate::bridge::{hand_over, vacate};
use crate::error::TestbedError;
use crate::host::{Guest, Place};
use crate::part::{ClientPart, Part};
use crate::pin;
use stacklab_model::{Bed, Links, Role};
use std::path::Path;

/// The clients' sites, and their places among the hosts.
const CLIENTS: [(Site, Role, usize); 2] = [(Site::Near, Role::Sender, 0), (Site::Far, Role::Receiver, 3)];

impl Routed {
    /// Starts guests at the ends of a row that stands and does not wait until they have booted. Their interfaces have the
    /// hardware and IP addresses that the namespaces had, so the routers see no difference; gVisor takes over the namespace's
    /// own. From then on kernels at both ends have their path MTUs by routes: nobody can have a guest find them again.
    pub(super) fn seat(
        &mut self,
        guests: [Option<Box<dyn Guest>>; 2],
        bed: &Bed,
        links: &Links,
        program: &Path,
    ) -> Result<(), TestbedError> {
        let processors = pin::halves();
        for (number, (guest, (site, role, place))) in guests.iter().zip(CLIENTS).enumerate() {
            let (mechanism, machine) = (self.mechanism, &mut self.machines[place]);
            let own = match site {
                Site::Near => links.near.of(bed),
                Site::Far => links.far.of(bed),
            };
            let tapped = guest.as_ref().is_some_and(|guest| guest.wants_a_tap());
            machine.inside(|| {
                if tapped {
                    vacate(hardware_address(site.client(), NEAR))?;
                    hand_over(own.mtu, own.offloads)
                } else {
                    lay::fix_path_mtus(site, mechanism, bed.mtu)
                }
            })?;
            let Some(guest) = guest else { continue };
            let client =
                ClientPart { site, mechanism, mtu: own.mtu, middle_mtu: bed.mtu, offloads: own.offloads };
            let place = Place {
                role,
                namespace: machine.pid(),
                processors: processors.as_ref().map_or(&[], |halves| &halves[number]),
                bed: &own,
                program,
                folder: &self.folder.for_host(role)?,
                part: Part::Client(client),
            };
            machine.invite(guest.as_ref(), &place)?;
            self.guests[number] = Some(guest.version());
        }
        self.lasting = true;
        Ok(())
    }
}
